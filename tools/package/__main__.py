#!/usr/bin/python3
"""Builds Debian packages of the last commit: encore, encore-tools, python3-encore-sim, encore-doc, and their debug
symbols.

Examples:
    ./dev package                     build/package/encore_*.deb and the others, for this system
    ./dev package --suite trixie      the same in a clean Debian 13, which mmdebstrap makes
    ./dev package --twice             build two times, in two directories, and compare byte for byte
    ./dev package --image             of the packages that were built: build/package/encore-image_*.tar, for
                                      podman load, docker load or skopeo copy oci-archive:FILE
    ./dev package --test              install, upgrade and purge the packages that were built in a clean system
    ./dev package --version 1.2.3-1   another version than that of CMakeLists.txt and the last commit

Changes that are not committed are left out. The time of the last commit is the time of all files.
"""

import argparse
import filecmp
import hashlib
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import image

ROOT = pathlib.Path(__file__).resolve().parents[2]
SUITES = {"bookworm": "12", "trixie": "13"}


class Problem(Exception):
    """The packages cannot be built; the text says why."""


def run(words, **options):
    """Runs a program, whose output goes to ours."""
    said = subprocess.run([str(word) for word in words], check=False, **options)
    if said.returncode != 0:
        raise Problem(f"{words[0]} ended with status {said.returncode}: {' '.join(map(str, words))}")
    return said


def git(*words):
    return subprocess.run(["git", "-C", ROOT, *words], check=True, capture_output=True, text=True,
                          env={**os.environ, "TZ": "UTC"}).stdout.strip()


def maintainer():
    """The person who builds, as Debian's tools name them; else the author of the last commit."""
    name, address = os.environ.get("DEBFULLNAME"), os.environ.get("DEBEMAIL")
    return f"{name} <{address}>" if name and address else git("log", "-1", "--format=%an <%ae>")


def program_version():
    found = re.search(r"^project\(encore VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)
    return found.group(1)


def package_version(suite):
    """A release's version where its tag is here, else one that sorts before it and after earlier commits'."""
    version = program_version()
    if f"v{version}" not in git("tag", "--points-at", "HEAD").split():
        version += git("log", "-1", "--date=format-local:%Y%m%d%H%M", "--format=~git%cd.%h", "--abbrev=8")
    return f"{version}-1+deb{SUITES[suite]}"


def this_suite():
    """The suite of this system. Raises Problem where packages are not built on it."""
    fields = dict(line.split("=", 1) for line in pathlib.Path("/etc/os-release").read_text().splitlines() if "=" in line)
    suite = fields.get("VERSION_CODENAME", "").strip('"')
    if suite not in SUITES:
        raise Problem(f"this system is \"{suite or 'unknown'}\"; packages are built on {' and '.join(SUITES)}. "
                      f"--suite NAME builds in a clean system of one of these")
    return suite


def export(directory, version):
    """Writes the sources of the last commit to `directory`, with debian/ where its tools expect it: docs/decisions/0550."""
    directory.mkdir(parents=True)
    archive = subprocess.Popen(["git", "-C", ROOT, "archive", "HEAD"], stdout=subprocess.PIPE)
    run(["tar", "-x", "-C", directory], stdin=archive.stdout)
    if archive.wait() != 0:
        raise Problem("git archive failed")
    debian = directory / "debian"
    shutil.copytree(directory / "packaging/debian", debian)
    control = debian / "control"
    control.write_text(control.read_text().replace("@MAINTAINER@", maintainer()))
    date = git("log", "-1", "--format=%cD")
    (debian / "changelog").write_text(
        f"encore ({version}) unstable; urgency=medium\n\n  * Build of commit {git('rev-parse', 'HEAD')}.\n\n"
        f" -- {maintainer()}  {date}\n")


def environment():
    """Variables of a build that depends on nothing but the commit."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "DEB_BUILD_OPTIONS", "http_proxy") if name in os.environ}
    options = kept.get("DEB_BUILD_OPTIONS") or f"parallel={os.environ.get('JOBS') or os.cpu_count()}"
    return {**kept, "LC_ALL": "C.UTF-8", "TZ": "UTC", "SOURCE_DATE_EPOCH": git("log", "-1", "--format=%ct"),
            "DEB_BUILD_OPTIONS": options}


def build_here(directory):
    run(["dpkg-buildpackage", "--build=binary", "--unsigned-source", "--unsigned-changes"], cwd=directory,
        env=environment(), stdout=sys.stderr)


def build_in(suite, directory):
    """Builds in a clean system of a suite, which is made for this and leaves nothing behind."""
    kept = [f"{name}={shlex.quote(value)}" for name, value in environment().items() if name not in ("PATH", "HOME")]
    script = directory.parent / "build.sh"
    script.write_text(f"""set -e
cd /build/{directory.name}
apt-get --yes --no-install-recommends build-dep .
env {' '.join(kept)} HOME=/tmp dpkg-buildpackage --build=binary --unsigned-source --unsigned-changes
mkdir /build/out
mv /build/*.deb /build/*.changes /build/*.buildinfo /build/out
""")
    run(["mmdebstrap", "--variant=buildd", "--format=null", "--customize-hook=mkdir -p $1/build",
         f"--customize-hook=copy-in {directory} {script} /build", '--customize-hook=chroot "$1" sh /build/build.sh',
         f"--customize-hook=sync-out /build/out {directory.parent}", suite, "-"], stdout=sys.stderr)


def build(where, version, clean_suite):
    """Builds in a new directory below `where`, here or in a clean system; the packages and what describes them."""
    directory = where / f"encore-{version.split('-')[0]}"
    export(directory, version)
    if clean_suite:
        build_in(clean_suite, directory)
    else:
        build_here(directory)
    return sorted(path for path in where.iterdir() if path.suffix in (".deb", ".changes", ".buildinfo"))


def check_equal(first, second):
    """Raises Problem where two builds differ. Times and names of machines are in .buildinfo, and so in .changes."""
    for one, other in zip([path for path in first if path.suffix == ".deb"],
                          [path for path in second if path.suffix == ".deb"], strict=True):
        if one.name != other.name or not filecmp.cmp(one, other, shallow=False):
            raise Problem(f"{one} and {other} differ")
        print(f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}: equal in both builds")


def lint(files):
    """Raises Problem if lintian has an error or a warning."""
    changes = [path for path in files if path.suffix == ".changes"]
    print("lintian --fail-on error,warning", *[path.name for path in changes])
    run(["lintian", "--allow-root", "--fail-on", "error,warning", *changes])
    print("lintian: 0 errors, 0 warnings")


def package(options):
    version = options.version or package_version(options.suite or this_suite())
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if git("status", "--porcelain"):
        print("./dev package: changes that are not committed are left out", file=sys.stderr)
    with tempfile.TemporaryDirectory(prefix="encore-package-") as name:
        work = pathlib.Path(name)
        files = build(work / "first", version, options.suite)
        if options.twice:
            check_equal(files, build(work / "second/below", version, options.suite))
        if not options.no_lint:
            lint(files)
        return [pathlib.Path(shutil.copy(path, out)) for path in files]


def make_image(out):
    """Writes the image of the newest package in `out`, of the time of its last file."""
    debs = sorted(out.glob("encore_*.deb"), key=lambda path: path.stat().st_mtime)
    if not debs:
        raise Problem(f"no encore_*.deb in {out}; ./dev package builds it")
    found = re.search(r"\+deb(\d+)_", debs[-1].name)
    suite = {number: suite for suite, number in SUITES.items()}.get(found.group(1) if found else "")
    if not suite:
        raise Problem(f"{debs[-1]}: its version ends in none of {', '.join('+deb' + each for each in SUITES.values())}")
    to = out / f"encore-image_{debs[-1].stem.removeprefix('encore_')}.tar"
    with tempfile.TemporaryDirectory(prefix="encore-image-") as work:
        image.make(debs[-1], suite, pathlib.Path(work), to, int(git("log", "-1", "--format=%ct")), run)
    return to


def main():
    parser = argparse.ArgumentParser(prog="./dev package", description=__doc__.split("\n")[0],
                                     epilog=__doc__[__doc__.index("Examples:"):],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="DIR", type=pathlib.Path, default=ROOT / "build/package",
                        help="where the packages go; default: build/package")
    parser.add_argument("--version", help="of the packages; default: CMakeLists.txt's, with the last commit's time")
    parser.add_argument("--suite", choices=SUITES, help="build in a clean system of this suite; default: here")
    parser.add_argument("--twice", action="store_true", help="build twice, and fail if a byte differs")
    parser.add_argument("--no-lint", action="store_true", help="do not run lintian")
    parser.add_argument("--image", action="store_true", help="make a container image of the packages in DIR")
    parser.add_argument("--test", action="store_true", help="test the packages in DIR in a clean system")
    options = parser.parse_args()
    os.umask(0o022)
    try:
        if options.image:
            print(make_image(options.out))
        elif options.test:
            run([sys.executable, "-B", ROOT / "tests/package/run", options.out])
        else:
            for path in package(options):
                print(path)
    except Problem as problem:
        print(f"./dev package: {problem}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
