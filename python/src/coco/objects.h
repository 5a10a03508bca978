// Reading Python's dicts, lists and numbers at C's speed. The GIL must be held.
#pragma once

#include <nanobind/nanobind.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace millrace::python {

namespace nb = nanobind;

/// A value that pycocotools takes and flat arrays cannot hold, as an image id that is a string.
struct Unusual : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Where an object stands, for messages: "annotations[17]".
struct Place {
  const char* list;
  std::size_t index;

  std::string text() const;
};

[[noreturn]] void fail_value(const Place& place, const std::string& why);
[[noreturn]] void fail_type(const Place& place, const std::string& why);

/// A name of dict entries, made once and looked up by identity.
class Key {
 public:
  explicit Key(const char* name) : name_(name), object_(PyUnicode_InternFromString(name)) {}

  const char* name() const { return name_; }

  /// The entry of a dict, borrowed; nullptr if there is none.
  PyObject* find(PyObject* dict) const {
    PyObject* value = PyDict_GetItemWithError(dict, object_);
    if (!value && PyErr_Occurred()) nb::raise_python_error();
    return value;
  }
  /// Throws KeyError naming the place and the key.
  PyObject* get(PyObject* dict, const Place& place) const;

 private:
  const char* name_;
  PyObject* object_;  // for the life of the process
};

/// The names that COCO's files use.
struct Keys {
  Key id{"id"}, image_id{"image_id"}, category_id{"category_id"}, bbox{"bbox"}, area{"area"},
      iscrowd{"iscrowd"}, score{"score"}, segmentation{"segmentation"}, counts{"counts"},
      size{"size"}, height{"height"}, width{"width"}, keypoints{"keypoints"},
      num_keypoints{"num_keypoints"}, ignore{"ignore"}, neg_category_ids{"neg_category_ids"},
      not_exhaustive_category_ids{"not_exhaustive_category_ids"};
};
const Keys& keys();

/// `object` if it is a dict; else throws TypeError.
PyObject* dict_at(PyObject* object, const Place& place);

/// A whole number; integers of NumPy and floats without a fraction count as such. Throws Unusual
/// for anything else.
std::int64_t id_of(PyObject* value, const char* field, const Place& place);

/// Whether it is one of Python's own numbers, as nearly all are.
inline bool is_plain_number(PyObject* value) {
  return PyFloat_CheckExact(value) || PyLong_CheckExact(value);
}

/// A number that may be infinite but is not NaN. Throws ValueError or TypeError.
double ordered_of(PyObject* value, const char* field, const Place& place);
/// A finite number.
double finite_of(PyObject* value, const char* field, const Place& place);
inline double number_of(PyObject* value, const char* field, const Place& place) {
  if (PyFloat_CheckExact(value)) {
    const double read = PyFloat_AsDouble(value);
    if (std::isfinite(read)) return read;
  }
  return finite_of(value, field, place);
}

/// True, False or a number.
bool flag_of(PyObject* value, const char* field, const Place& place);

/// The items of a list or tuple, borrowed, or of any other sequence, held until destruction.
class Items {
 public:
  Items(PyObject* sequence, const char* field, const Place& place);

  std::size_t size() const { return size_; }
  PyObject* operator[](std::size_t i) const {
    const auto at = static_cast<Py_ssize_t>(i);
    PyObject* item =
        is_list_ ? PyList_GetItem(object_.ptr(), at) : PyTuple_GetItem(object_.ptr(), at);
    if (!item) nb::raise_python_error();  // another thread has shortened the list
    return item;
  }

 private:
  nb::object object_;
  bool is_list_ = false;
  std::size_t size_ = 0;
};

/// Text of a str or bytes; lives as long as the object does. Throws TypeError.
std::string_view text_of(PyObject* value, const char* field, const Place& place);

}  // namespace millrace::python
