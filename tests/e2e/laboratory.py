"""The Python module encore_sim of the build, for tests; they are skipped where it or NumPy is missing."""

import os
import sys
import unittest

from harness import Case, need_simulator

WHY = None
lab = np = None
if not os.environ.get("ENCORE_PYTHON"):
    WHY = ("ENCORE_PYTHON does not name the module's directory; install pybind11-dev and python3-dev, and "
           "configure the build again")
else:
    sys.path.insert(0, os.environ["ENCORE_PYTHON"])
    try:
        import numpy as np
        import encore_sim as lab
    except ImportError as error:
        WHY = f"{sys.executable}: {error}; install python3-numpy"


@unittest.skipIf(WHY, WHY)
class LaboratoryCase(Case):
    def sim(self, *arguments):
        """The output of encore-sim."""
        program = need_simulator()
        return self.run_client([program, *arguments]).stdout.decode()

    def refused(self, pattern, call, *arguments, **options):
        """The call gives a ValueError with the message."""
        with self.assertRaisesRegex(ValueError, pattern):
            call(*arguments, **options)
