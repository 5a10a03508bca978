// The Python module millrace._coco: what millrace.coco is made of.
#include <nanobind/nanobind.h>

NB_MODULE(_coco, module) { module.doc() = "COCO data sets, masks and evaluation in C++."; }
