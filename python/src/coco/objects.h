// Fast reading of Python dicts, lists and numbers. The GIL must be held.
#pragma once

#include <nanobind/nanobind.h>

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

namespace millrace::python {

namespace nb = nanobind;

/// A value that pycocotools accepts but arrays cannot contain, such as a string as image id.
struct Unusual : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The location of an object in a list, for messages: "annotations[17]".
struct Place {
  const char* list;
  std::size_t index;

  std::string text() const;
};

[[noreturn]] void fail_value(const Place& place, const std::string& why);
[[noreturn]] void fail_type(const Place& place, const std::string& why);

/// A dict key, created once as an interned string so that lookups compare identities.
class Key {
 public:
  explicit Key(const char* name) : name_(name), object_(PyUnicode_InternFromString(name)) {}

  const char* name() const { return name_; }

  /// Returns the entry of a dict as a borrowed reference; nullptr if not found.
  PyObject* find(PyObject* dict) const {
    PyObject* value = PyDict_GetItemWithError(dict, object_);
    if (!value && PyErr_Occurred()) nb::raise_python_error();
    return value;
  }
  /// Returns the entry of a dict. Throws KeyError with the location and the key if it is missing.
  PyObject* get(PyObject* dict, const Place& place) const;

 private:
  const char* name_;
  PyObject* object_;  // never released
};

/// The keys used in COCO files.
struct Keys {
  Key id{"id"}, image_id{"image_id"}, category_id{"category_id"}, bbox{"bbox"}, area{"area"},
      iscrowd{"iscrowd"}, score{"score"}, segmentation{"segmentation"}, counts{"counts"},
      size{"size"}, height{"height"}, width{"width"}, keypoints{"keypoints"},
      num_keypoints{"num_keypoints"}, ignore{"ignore"}, neg_category_ids{"neg_category_ids"},
      not_exhaustive_category_ids{"not_exhaustive_category_ids"};
};
const Keys& keys();

/// Returns `object` if it is a dict, otherwise throws TypeError.
PyObject* dict_at(PyObject* object, const Place& place);

/// Converts an integer, including NumPy integers and floats without a fraction. Throws Unusual for
/// anything else.
std::int64_t id_of(PyObject* value, const char* field, const Place& place);

/// Returns true if the value is exactly a Python float or int, the usual case.
inline bool is_plain_number(PyObject* value) {
  return PyFloat_CheckExact(value) || PyLong_CheckExact(value);
}

/// Converts a number that may be infinite but not NaN. Throws ValueError or TypeError.
double ordered_of(PyObject* value, const char* field, const Place& place);
/// Converts a finite number. Throws ValueError or TypeError.
double finite_of(PyObject* value, const char* field, const Place& place);
inline double number_of(PyObject* value, const char* field, const Place& place) {
  if (PyFloat_CheckExact(value)) {
    const double read = PyFloat_AsDouble(value);
    if (std::isfinite(read)) return read;
  }
  return finite_of(value, field, place);
}

/// Converts True, False or a number.
bool flag_of(PyObject* value, const char* field, const Place& place);

/// The items of a list or tuple, or of any other sequence, which is copied to a tuple.
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

/// Returns the contents of a str or bytes, valid while the object exists. Throws TypeError.
std::string_view text_of(PyObject* value, const char* field, const Place& place);

}  // namespace millrace::python
