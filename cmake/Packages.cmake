# SPDX-License-Identifier: Apache-2.0
# Third-party packages, found once, as targets pkg::<name>. Imported targets, so their headers are SYSTEM.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)

function(mr_package_missing name debian)
  message(FATAL_ERROR "millrace needs ${name}: install the Debian package ${debian} "
    "(scripts/install-deps.sh installs all; scripts/aarch64-check.sh cross-builds)")
endfunction()

# pkg::<name> from the pkg-config module `module` of the Debian package `debian`.
function(mr_package name module debian)
  pkg_check_modules(MR_PKG_${name} IMPORTED_TARGET GLOBAL ${module})
  if(NOT MR_PKG_${name}_FOUND)
    mr_package_missing(${module} ${debian})
  endif()
  add_library(pkg::${name} ALIAS PkgConfig::MR_PKG_${name})
endfunction()

mr_package(urcu liburcu-memb liburcu-dev)
mr_package(zstd libzstd libzstd-dev)
mr_package(msgpack msgpack libmsgpack-dev)
mr_package(dw libdw libdw-dev)
mr_package(elf libelf libelf-dev)
mr_package(sqlite3 sqlite3 libsqlite3-dev)
mr_package(microhttpd libmicrohttpd libmicrohttpd-dev)
mr_package(jansson jansson libjansson-dev)
mr_package(cmocka cmocka libcmocka-dev)

# pkg::<name> for packages of which we use headers alone: nothing to link, so the probe stays free of them.
function(mr_header_package name header debian)
  find_path(MR_${name}_INCLUDE ${header})
  if(NOT MR_${name}_INCLUDE)
    mr_package_missing(${header} ${debian})
  endif()
  add_library(pkg::${name} INTERFACE IMPORTED GLOBAL)
  # The compiler's own folders must not be named: it would change the order of the system headers.
  if(NOT MR_${name}_INCLUDE IN_LIST CMAKE_C_IMPLICIT_INCLUDE_DIRECTORIES)
    set_target_properties(pkg::${name} PROPERTIES
      INTERFACE_INCLUDE_DIRECTORIES ${MR_${name}_INCLUDE})
  endif()
endfunction()

mr_header_package(ck ck_pr.h libck-dev)
mr_header_package(xxhash xxhash.h libxxhash-dev)

# libpfm4 has no pkg-config file.
find_path(MR_PFM_INCLUDE perfmon/pfmlib.h)
find_library(MR_PFM_LIBRARY pfm)
if(NOT MR_PFM_INCLUDE OR NOT MR_PFM_LIBRARY)
  mr_package_missing(libpfm4 libpfm4-dev)
endif()
add_library(pkg::pfm UNKNOWN IMPORTED GLOBAL)
set_target_properties(pkg::pfm PROPERTIES IMPORTED_LOCATION ${MR_PFM_LIBRARY}
  INTERFACE_INCLUDE_DIRECTORIES ${MR_PFM_INCLUDE})

# What is linked into the probe, hidden: the static archives.
foreach(name zstd)
  find_library(MR_${name}_ARCHIVE lib${name}.a HINTS ${MR_PKG_${name}_LIBDIR})
  if(NOT MR_${name}_ARCHIVE)
    mr_package_missing(lib${name}.a lib${name}-dev)
  endif()
  add_library(pkg::${name}_static STATIC IMPORTED GLOBAL)
  set_target_properties(pkg::${name}_static PROPERTIES IMPORTED_LOCATION ${MR_${name}_ARCHIVE}
    INTERFACE_INCLUDE_DIRECTORIES "${MR_PKG_${name}_INCLUDE_DIRS}")
endforeach()
