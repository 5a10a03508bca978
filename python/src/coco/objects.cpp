#include "python/src/coco/objects.h"

#include <fmt/format.h>

namespace millrace::python {
namespace {

/// Converts any number to double. Returns false, without setting a Python error, if `value` is not
/// a number.
bool to_double(PyObject* value, double& out) {
  if (PyFloat_CheckExact(value)) {
    out = PyFloat_AsDouble(value);
    return true;
  }
  if (PyLong_CheckExact(value)) {
    out = PyLong_AsDouble(value);
    if (out != -1 || !PyErr_Occurred()) return true;
    PyErr_Clear();
    return false;
  }
  if (PyUnicode_Check(value) || PyBytes_Check(value)) return false;
  const nb::object number = nb::steal(PyNumber_Float(value));
  if (!number) {
    PyErr_Clear();
    return false;
  }
  out = PyFloat_AsDouble(number.ptr());
  return true;
}

}  // namespace

std::string Place::text() const { return fmt::format("{}[{}]", list, index); }

void fail_value(const Place& place, const std::string& why) {
  throw nb::value_error((place.text() + ": " + why).c_str());
}

void fail_type(const Place& place, const std::string& why) {
  throw nb::type_error((place.text() + ": " + why).c_str());
}

PyObject* Key::get(PyObject* dict, const Place& place) const {
  if (PyObject* value = find(dict)) return value;
  throw nb::key_error(fmt::format("{}: '{}' is missing", place.text(), name_).c_str());
}

const Keys& keys() {
  static const Keys all;
  return all;
}

PyObject* dict_at(PyObject* object, const Place& place) {
  if (!PyDict_Check(object)) fail_type(place, "not a dict");
  return object;
}

std::int64_t id_of(PyObject* value, const char* field, const Place& place) {
  if (PyLong_CheckExact(value)) {
    const long long read = PyLong_AsLongLong(value);
    if (read != -1 || !PyErr_Occurred()) return read;
    PyErr_Clear();
  } else if (PyFloat_Check(value)) {
    const double read = PyFloat_AsDouble(value);
    if (read == std::floor(read) && std::abs(read) < 9e15) return static_cast<std::int64_t>(read);
  } else if (const nb::object index = nb::steal(PyNumber_Index(value))) {
    const long long read = PyLong_AsLongLong(index.ptr());
    if (read != -1 || !PyErr_Occurred()) return read;
    PyErr_Clear();
  } else {
    PyErr_Clear();
  }
  throw Unusual(fmt::format("{}: '{}' is not a 64-bit integer", place.text(), field));
}

double ordered_of(PyObject* value, const char* field, const Place& place) {
  double read = 0;
  if (!to_double(value, read)) fail_type(place, fmt::format("'{}' is not a number", field));
  if (std::isnan(read)) fail_value(place, fmt::format("'{}' is NaN", field));
  return read;
}

double finite_of(PyObject* value, const char* field, const Place& place) {
  const double read = ordered_of(value, field, place);
  if (std::isinf(read)) fail_value(place, fmt::format("'{}' is infinite", field));
  return read;
}

bool flag_of(PyObject* value, const char* field, const Place& place) {
  if (value == Py_True) return true;
  if (value == Py_False) return false;
  return ordered_of(value, field, place) != 0;
}

Items::Items(PyObject* sequence, const char* field, const Place& place) {
  if (PyList_Check(sequence)) {
    object_ = nb::borrow(sequence);
    is_list_ = true;
    size_ = static_cast<std::size_t>(PyList_Size(sequence));
    return;
  }
  const bool is_text = PyUnicode_Check(sequence) || PyBytes_Check(sequence);
  if (!is_text) object_ = nb::steal(PySequence_Tuple(sequence));
  if (!object_) {
    PyErr_Clear();
    fail_type(place, fmt::format("'{}' is not a list", field));
  }
  size_ = static_cast<std::size_t>(PyTuple_Size(object_.ptr()));
}

std::string_view text_of(PyObject* value, const char* field, const Place& place) {
  Py_ssize_t size = 0;
  if (PyBytes_Check(value)) {
    char* data = nullptr;
    if (PyBytes_AsStringAndSize(value, &data, &size) != 0) nb::raise_python_error();
    return {data, static_cast<std::size_t>(size)};
  }
  if (PyUnicode_Check(value)) {
    const char* data = PyUnicode_AsUTF8AndSize(value, &size);
    if (!data) nb::raise_python_error();
    return {data, static_cast<std::size_t>(size)};
  }
  fail_type(place, fmt::format("'{}' is neither bytes nor str", field));
}

}  // namespace millrace::python
