// Stands behind the precompiled header, so that the target that makes it has a source using it.
