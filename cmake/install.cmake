# cmake --install installs both programs, their manual page, completions and schema, the CMake
# package for building plug-ins, configurations and pages. Must be included after the rooms.
# plugins/ installs the headers.
include_guard(GLOBAL)
include(CMakePackageConfigHelpers)
include(public_headers)

set(package_folder lib/cmake/millrace)
install(TARGETS trainer EXPORT millraceTargets)  # millrace::program, for tests of plug-ins
install(TARGETS trainer-torch)
install(EXPORT millraceTargets NAMESPACE millrace:: DESTINATION ${package_folder})
configure_package_config_file(
  cmake/millraceConfig.cmake.in ${PROJECT_BINARY_DIR}/millraceConfig.cmake
                              INSTALL_DESTINATION ${package_folder} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/millraceConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
configure_file(cmake/plugins.cmake.in ${PROJECT_BINARY_DIR}/plugins.cmake @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/plugins.cmake
              cmake/add_plugin.cmake cmake/build_id.cmake cmake/libtorch.cmake cmake/opencv.cmake
              plugins/plugin.cpp plugins/build_id.h.in
        DESTINATION ${package_folder})
# The predictor; `cmake --install BUILD --component predict` installs it alone.
install(FILES ${PROJECT_BINARY_DIR}/millraceConfig.cmake
              ${PROJECT_BINARY_DIR}/millraceConfigVersion.cmake cmake/predict.cmake
        DESTINATION ${package_folder} COMPONENT predict)
install(TARGETS millrace_predict_library LIBRARY DESTINATION lib COMPONENT predict
                                         NAMELINK_COMPONENT predict)
install(TARGETS millrace_image_readers DESTINATION lib/millrace COMPONENT predict)
install(FILES models/predict/millrace_predict.h DESTINATION include COMPONENT predict)
foreach(header millrace/base/errors.h millrace/coco/masks/masks.h
               millrace/models/detector/detected_object.h ${predict_headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${MILLRACE_INCLUDE}/${header} DESTINATION include/${folder} COMPONENT predict)
endforeach()
install(DIRECTORY configs DESTINATION share/millrace)
set(shell ${PROJECT_BINARY_DIR}/shell)
install(FILES ${shell}/trainer.schema.json DESTINATION share/millrace RENAME millrace.schema.json)
install(FILES ${shell}/trainer.1 DESTINATION share/man/man1)
install(FILES ${shell}/trainer.bash DESTINATION share/bash-completion/completions RENAME trainer)
install(FILES ${shell}/trainer.zsh DESTINATION share/zsh/site-functions RENAME _trainer)
install(FILES ${shell}/trainer.fish DESTINATION share/fish/vendor_completions.d)
install(DIRECTORY examples/my_callback examples/my_stage examples/my_detector
                  examples/predict_c
        DESTINATION share/millrace/examples
        REGEX "/(build|data|runs)$" EXCLUDE)
install(FILES examples/predict.py examples/read_batches.py examples/README.md
        DESTINATION share/millrace/examples)
install(DIRECTORY examples/classification DESTINATION share/millrace/examples)
install(DIRECTORY docs DESTINATION share/doc/millrace)
install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md LICENSE NOTICE
        DESTINATION share/doc/millrace)
install(CODE "execute_process(COMMAND python3 \"${PROJECT_SOURCE_DIR}/scripts/relink_pages.py\"
                                      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\"
                              COMMAND_ERROR_IS_FATAL ANY)")
include(debian)
