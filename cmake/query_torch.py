"""Prints, as a CMake script, how to build against the torch of the Python that runs this.

find_package(Torch) of a CUDA build of torch fails where no CUDA toolkit is installed, so the
folders are taken from torch itself. Exit status 1 with one line on stderr: torch is unusable.
"""

import os
import sys


def main() -> int:
    try:
        import torch
    except Exception as error:  # an unusable torch raises OSError or RuntimeError as well
        print(f"{type(error).__name__}: {error}".splitlines()[0], file=sys.stderr)
        return 1

    from torch.utils import cpp_extension

    definitions = [f"_GLIBCXX_USE_CXX11_ABI={int(torch._C._GLIBCXX_USE_CXX11_ABI)}"]
    # Up to torch 2.8 its pybind11 told modules apart by these; they must then match.
    for name in ("COMPILER_TYPE", "STDLIB", "BUILD_ABI"):
        value = getattr(torch._C, f"_PYBIND11_{name}", None)
        if value is not None:
            definitions.append(f'PYBIND11_{name}="{value}"')
    libraries = []
    for name in ("torch", "torch_cpu", "torch_python", "c10"):
        found = [
            path
            for folder in cpp_extension.library_paths()
            if os.path.exists(path := os.path.join(folder, f"lib{name}.so"))
        ]
        if not found:
            print(f"lib{name}.so is not in {cpp_extension.library_paths()}", file=sys.stderr)
            return 1
        libraries.append(found[0])

    def emit(name: str, values: list[str]) -> None:
        print(f"set({name} " + " ".join(f"[==[{value}]==]" for value in values) + ")")

    emit("GRADWIRE_TORCH_VERSION", [torch.__version__])
    emit("GRADWIRE_TORCH_INCLUDE_DIRS", cpp_extension.include_paths())
    emit("GRADWIRE_TORCH_LIBRARIES", libraries)
    emit("GRADWIRE_TORCH_DEFINITIONS", definitions)
    return 0


if __name__ == "__main__":
    sys.exit(main())
