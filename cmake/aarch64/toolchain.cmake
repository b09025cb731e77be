# SPDX-License-Identifier: Apache-2.0
# Cross build for aarch64 with Debian's gcc-aarch64-linux-gnu and the sysroot that scripts/aarch64-check.sh makes.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../.. ABSOLUTE)
set(MR_SYSROOT ${root}/build/aarch64-sysroot CACHE PATH "arm64 -dev packages, unpacked")
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${MR_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
  ${MR_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${MR_SYSROOT}/usr/share/pkgconfig)
# libc comes with the compiler; only the packages come from the sysroot.
set(CMAKE_FIND_ROOT_PATH ${MR_SYSROOT} /usr/aarch64-linux-gnu)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# What the packages' shared libraries need in turn is not in the sysroot, and nothing is run.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,--unresolved-symbols=ignore-in-shared-libs")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "-Wl,--unresolved-symbols=ignore-in-shared-libs")
