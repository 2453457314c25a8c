"""Builds the native core where a C++ compiler is there, and leaves it out where not; the rest is in pyproject.toml."""

from glob import glob

from pybind11.setup_helpers import Pybind11Extension
from setuptools import setup

core = Pybind11Extension(
    "solvers.core._core", sorted(glob("solvers/core/*.cpp")), cxx_std=17, extra_compile_args=["-O3"]
)
core.optional = True

setup(ext_modules=[core])
