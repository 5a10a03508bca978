# Finds the two OpenCV modules that Millrace uses, as targets opencv_core and opencv_imgproc: arrays
# and drawing. Image files are read and written without OpenCV. Debian keeps OpenCVConfig.cmake in
# libopencv-dev, which brings 200 packages; its module packages come without one.
include_guard(GLOBAL)

find_package(OpenCV QUIET COMPONENTS core imgproc)
if(NOT OpenCV_FOUND)
  find_path(OPENCV_INCLUDE opencv2/core.hpp PATH_SUFFIXES opencv4 REQUIRED)
  foreach(module core imgproc)
    find_library(OPENCV_${module} opencv_${module} REQUIRED)
    add_library(opencv_${module} UNKNOWN IMPORTED GLOBAL)
    set_target_properties(opencv_${module} PROPERTIES IMPORTED_LOCATION "${OPENCV_${module}}")
    target_include_directories(opencv_${module} SYSTEM INTERFACE "${OPENCV_INCLUDE}")
  endforeach()
endif()
