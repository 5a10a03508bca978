// The Python module millrace._coco, which implements millrace.coco.
#include <nanobind/nanobind.h>

#include "millrace/base/errors.h"
#include "millrace/base/word_wrap.h"
#include "python/src/coco/bindings.h"
#include "python/src/coco/objects.h"

namespace nb = nanobind;
using namespace millrace::python;

NB_MODULE(_coco, module) {
  module.doc() = "COCO data sets, masks and evaluation in C++.";
  nb::exception<Unusual>(module, "Unusual", PyExc_ValueError);
  nb::register_exception_translator([](const std::exception_ptr& thrown, void*) {
    try {
      std::rethrow_exception(thrown);
    } catch (const millrace::Error& problem) {
      PyErr_SetString(PyExc_ValueError, millrace::printable(problem.what()).c_str());
    }
  });
  bind_masks(module);
  bind_sets(module);
  bind_evaluation(module);
}
