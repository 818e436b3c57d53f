"""Untested here: Conan can not be had where this was written. The tests run it with a stand-in for Conan's module, which shows which files
it packages and which libraries it names, and no more. For Conan 2, from the top of the repository:

    conan create examples/packaging/conan

and in a consumer: requires("netcode/[>=1.0 <2]"), then find_package(netcode REQUIRED) with CMakeDeps, and netcode::netcode."""

import os

from conan import ConanFile
from conan.tools.files import copy
from conan.tools.layout import basic_layout


class NetcodeConan(ConanFile):
    name = "netcode"
    version = "1.1.0"
    license = "MIT"
    description = "Secure client/server connections over UDP, the netcode 1.02 protocol, in one header"
    topics = ("network", "udp", "games", "header-only")
    package_type = "header-library"
    settings = "os", "arch", "compiler", "build_type"
    no_copy_source = True

    def export_sources(self):
        top = os.path.join(self.recipe_folder, "..", "..", "..")
        for name in ("netcode.h", "LICENSE"):
            copy(self, name, top, self.export_sources_folder)

    def layout(self):
        basic_layout(self)

    def requirements(self):
        # Headers and all: the one file that compiles the implementation includes sodium.h.
        self.requires("libsodium/1.0.20", transitive_headers=True, transitive_libs=True)

    def package_id(self):
        self.info.clear()

    def package(self):
        copy(self, "LICENSE", self.source_folder, os.path.join(self.package_folder, "licenses"))
        copy(self, "netcode.h", self.source_folder, os.path.join(self.package_folder, "include"))

    def package_info(self):
        self.cpp_info.bindirs = []
        self.cpp_info.libdirs = []
        self.cpp_info.set_property("cmake_file_name", "netcode")
        self.cpp_info.set_property("cmake_target_name", "netcode::netcode")
        self.cpp_info.set_property("pkg_config_name", "netcode")
        if self.settings.os == "Windows":
            self.cpp_info.system_libs = ["ws2_32"]
