# `make deb`: a package for the Debian release that it is built on. It does not contain libtorch:
# `trainer` searches for one at each start, as in the archive of scripts/package (docs/install.md).
include_guard(GLOBAL)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME millrace)
set(CPACK_PACKAGE_VENDOR "the Millrace authors")
set(CPACK_PACKAGE_CONTACT "the Millrace authors <millrace@packages.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains object detectors from a TOML file")
set(CPACK_PACKAGE_DESCRIPTION
"Millrace trains Mask, Faster and Cascade R-CNN and RetinaNet natively: a
data flow of pluggable stages feeds a trainer with callbacks. It also
evaluates by COCO's rules, checks data sets, predicts and exports.

libtorch is not in this package: install torch with pip, or set LIBTORCH
to its folder.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_SOURCE_DIR}/build)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/debian_tree.cmake)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${libtorch_root}/lib)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "python3, openmpi-bin")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "python3-venv, python3-yaml")
# Used by debian_tree.cmake:
set(CPACK_MILLRACE_SOURCES ${PROJECT_SOURCE_DIR})
set(CPACK_MILLRACE_LIBTORCH ${libtorch_version})
include(CPack)
