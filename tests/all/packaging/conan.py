#!/usr/bin/env python3
"""Runs examples/packaging/conan/conanfile.py with a stand-in for the module `conan`. It does what Conan's documentation says, as far as a
header needs it; Conan itself was not there. Called by tests/all/packaging.sh:

    conan.py CONANFILE FOLDER     packages into FOLDER/package and prints the package's name, version and requirements"""

import fnmatch
import importlib.util
import os
import shutil
import sys
import types


class Settings:
    def __init__(self, system):
        self.os = system


class CppInfo:
    def __init__(self):
        self.properties = {}
        self.includedirs = ["include"]
        self.libdirs = ["lib"]
        self.bindirs = ["bin"]
        self.system_libs = []

    def set_property(self, name, value):
        self.properties[name] = value


class ConanFile:
    def __init__(self, folder, recipe, system):
        self.recipe_folder = recipe
        self.export_sources_folder = self.source_folder = os.path.join(folder, "source")
        self.package_folder = os.path.join(folder, "package")
        self.settings = Settings(system)
        self.cpp_info = CppInfo()
        self.required = []

    def requires(self, reference, transitive_headers=False, transitive_libs=False):
        self.required.append((reference, transitive_headers, transitive_libs))


def copy(_, pattern, src, dst):
    found = [name for name in os.listdir(src) if fnmatch.fnmatch(name, pattern)]
    for name in found:
        os.makedirs(dst, exist_ok=True)
        shutil.copy(os.path.join(src, name), dst)
    return found


def stand_in(name, **members):
    sys.modules[name] = types.ModuleType(name)
    vars(sys.modules[name]).update(members)


def load(path):
    stand_in("conan", ConanFile=ConanFile)
    stand_in("conan.tools")
    stand_in("conan.tools.files", copy=copy)
    stand_in("conan.tools.layout", basic_layout=lambda recipe: None)
    spec = importlib.util.spec_from_file_location("conanfile", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    recipes = [each for each in vars(module).values() if isinstance(each, type) and issubclass(each, ConanFile) and each is not ConanFile]
    assert len(recipes) == 1, "one recipe in a file"
    return recipes[0]


def main():
    path, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    recipe_class = load(path)
    for system in ("Linux", "Windows"):
        recipe = recipe_class(folder, os.path.dirname(path), system)
        recipe.export_sources()
        recipe.layout()
        recipe.requirements()
        recipe.package()
        recipe.package_info()
        assert recipe.package_type == "header-library" and recipe.license == "MIT"
        assert recipe.cpp_info.properties["cmake_target_name"] == "netcode::netcode"
        assert recipe.cpp_info.libdirs == [] and recipe.cpp_info.includedirs == ["include"]
        assert recipe.cpp_info.system_libs == (["ws2_32"] if system == "Windows" else [])
        assert all(headers and libraries for _, headers, libraries in recipe.required), "the header's users include and link libsodium"
    print(recipe.name, recipe.version, *[reference.split("/")[0] for reference, _, _ in recipe.required])


if __name__ == "__main__":
    main()
