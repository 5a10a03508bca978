# Finds the two OpenCV modules that Millrace uses, for arrays and drawing, as the targets
# opencv_core and opencv_imgproc. Image files are read and written without OpenCV. On Debian,
# OpenCVConfig.cmake is in libopencv-dev, which installs 200 packages; the packages of single
# modules do not contain it.
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
