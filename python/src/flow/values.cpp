#include "python/src/flow/values.h"

#include <fmt/format.h>

#include <cstdint>
#include <new>
#include <type_traits>

#include "millrace/base/word_wrap.h"
#include "millrace/coco/masks/masks.h"

namespace millrace::python {
namespace {

PyObject* data_error = nullptr;  // never released

/// Throws ConfigError and clears Python's error.
[[noreturn]] void refuse(const std::string& place, const std::string& why) {
  PyErr_Clear();
  throw ConfigError(place + ": " + why);
}

std::string class_of(nb::handle value) {
  return nb::cast<std::string>(value.type().attr("__name__"));
}

std::string text_of_str(nb::handle value, const std::string& place) {
  try {
    return nb::cast<std::string>(nb::str(value));
  } catch (const std::exception&) {
    refuse(place, "is not a string that can be encoded as UTF-8");
  }
}

Config table_of(nb::handle value, const std::string& place) {
  Config::Table table;
  for (const auto item : nb::cast<nb::dict>(value)) {
    if (!nb::isinstance<nb::str>(item.first))
      refuse(place, fmt::format("has a key that is not a string: {}",
                                nb::cast<std::string>(nb::repr(item.first))));
    const auto key = text_of_str(item.first, place);
    table.emplace_back(key, to_config(item.second, place));
  }
  return {std::move(table), {place}};
}

}  // namespace

Config to_config(nb::handle value, const std::string& place) {
  const Origin origin{place};
  if (PyBool_Check(value.ptr())) return {value.is(nb::handle(Py_True)), origin};
  if (PyLong_Check(value.ptr())) {
    int overflow = 0;
    const auto number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
    if (overflow != 0) refuse(place, "is an integer with more than 64 bits");
    return {std::int64_t{number}, origin};
  }
  if (PyFloat_Check(value.ptr())) return {PyFloat_AsDouble(value.ptr()), origin};
  if (nb::isinstance<nb::str>(value)) return {text_of_str(value, place), origin};
  if (nb::isinstance<nb::dict>(value)) return table_of(value, place);
  if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    Config::Array items;
    for (const auto item : value)
      items.push_back(to_config(item, nb::isinstance<nb::dict>(item)
                                          ? fmt::format("{}[{}]", place, items.size())
                                          : place));
    return {std::move(items), origin};
  }
  if (nb::hasattr(value, "__fspath__")) return to_config(value.attr("__fspath__")(), place);
  // NumPy values.
  if (nb::hasattr(value, "tolist")) return to_config(value.attr("tolist")(), place);
  if (value.is_none()) refuse(place, "is None; omit the option to use its default");
  refuse(place, fmt::format("expected a number, string, list or dict, not '{}'", class_of(value)));
}

std::string path_of(nb::handle value, const std::string& place) {
  const auto path = to_config(value, place);
  const auto* text = std::get_if<std::string>(&path.data);
  if (!text) throw ConfigError(place + ": expected a path");
  return *text;
}

template <class T>
std::vector<T> numbers_in(nb::handle value, std::size_t columns, const std::string& what) {
  // NumPy converts integers to int64; they are narrowed here with a range check.
  using Wide = std::conditional_t<std::is_integral_v<T>, std::int64_t, T>;
  const char* dtype = std::is_integral_v<T> ? "int64" : sizeof(T) == 4 ? "float32" : "float64";
  try {
    const auto numpy = nb::module_::import_("numpy");
    auto array = numpy.attr("asarray")(value);
    const auto elements = nb::cast<std::size_t>(array.attr("size"));
    const auto dimensions = nb::cast<std::size_t>(array.attr("ndim"));
    if (elements == 0) return {};
    const bool fits =
        columns == 0 ? dimensions == 1
                     : dimensions == 2 && nb::cast<std::size_t>(array.attr("shape")[1]) == columns;
    if (!fits)
      throw Error(fmt::format("{} have shape {}, expected {}", what,
                              nb::cast<std::string>(nb::repr(array.attr("shape"))),
                              columns == 0 ? "(objects,)" : fmt::format("(objects, {})", columns)));
    array = numpy.attr("ascontiguousarray")(
        array.attr("astype")(dtype, nb::arg("casting") = "same_kind"));
    const auto view = nb::cast<nb::ndarray<const Wide, nb::c_contig, nb::device::cpu>>(array);
    std::vector<T> numbers;
    numbers.reserve(elements);
    for (std::size_t i = 0; i < elements; ++i) {
      const auto number = view.data()[i];
      if constexpr (std::is_integral_v<T>)
        if (!std::in_range<T>(number))
          throw Error(fmt::format("{} contain {}, which is out of range", what, number));
      numbers.push_back(static_cast<T>(number));
    }
    return numbers;
  } catch (const nb::python_error& error) {
    throw Error(fmt::format("{}: {}", what, text_of(error)));
  }
}
template std::vector<float> numbers_in(nb::handle, std::size_t, const std::string&);
template std::vector<double> numbers_in(nb::handle, std::size_t, const std::string&);
template std::vector<std::int32_t> numbers_in(nb::handle, std::size_t, const std::string&);
template std::vector<std::uint32_t> numbers_in(nb::handle, std::size_t, const std::string&);
template std::vector<std::uint8_t> numbers_in(nb::handle, std::size_t, const std::string&);

nb::object segmentation_to_python(const coco::Segmentation& shape, nb::handle owner) {
  if (const auto* polygons = std::get_if<std::vector<coco::Polygon>>(&shape)) {
    nb::list list;
    for (const auto& polygon : *polygons)
      list.append(array_over(const_cast<double*>(polygon.data()), {polygon.size()}, owner));
    return list;
  }
  const auto* mask = std::get_if<coco::Rle>(&shape);
  if (!mask) return nb::none();
  nb::dict dict;
  dict["size"] = nb::make_tuple(mask->height, mask->width);
  dict["counts"] =
      array_over(const_cast<std::uint32_t*>(mask->counts.data()), {mask->counts.size()}, owner);
  return dict;
}

coco::Segmentation segmentation_from_python(nb::handle value) {
  if (value.is_none()) return {};
  if (!nb::isinstance<nb::dict>(value)) {
    std::vector<coco::Polygon> polygons;
    for (const auto item : nb::iter(value))
      polygons.push_back(numbers_in<double>(item, 0, "a polygon's numbers"));
    return polygons;
  }
  const auto dict = nb::cast<nb::dict>(value);
  if (!dict.contains("size") || !dict.contains("counts"))
    throw Error("a run-length mask must be {\"size\": (height, width), \"counts\": ...}");
  const auto size = numbers_in<std::uint32_t>(dict["size"], 0, "a mask's size");
  if (size.size() != 2) throw Error("a mask's size must be (height, width)");
  const nb::object counts = dict["counts"];
  if (nb::isinstance<nb::str>(counts))
    return coco::decode_counts(nb::cast<std::string>(counts), size[0], size[1]);
  if (nb::isinstance<nb::bytes>(counts)) {
    const auto bytes = nb::cast<nb::bytes>(counts);
    return coco::decode_counts({bytes.c_str(), bytes.size()}, size[0], size[1]);
  }
  coco::Rle mask{size[0], size[1], numbers_in<std::uint32_t>(counts, 0, "a mask's counts")};
  std::uint64_t pixels = 0;
  for (const auto run : mask.counts) pixels += run;
  if (pixels != std::uint64_t{size[0]} * size[1])
    throw Error(fmt::format("a mask's counts add up to {} pixels, expected {} x {}", pixels,
                            size[1], size[0]));
  return mask;
}

std::string text_of(const nb::python_error& error) {
  auto text = nb::cast<std::string>(error.type().attr("__name__"));
  const auto said = nb::cast<std::string>(nb::str(error.value()));
  if (!said.empty()) text += ": " + said;
  auto trace = error.traceback();
  if (!trace.is_valid() || trace.is_none()) return text;
  while (!trace.attr("tb_next").is_none()) trace = trace.attr("tb_next");
  return fmt::format(
      "{} ({}:{})", text,
      nb::cast<std::string>(trace.attr("tb_frame").attr("f_code").attr("co_filename")),
      nb::cast<int>(trace.attr("tb_lineno")));
}

void raise_in_python() {
  try {
    throw;
  } catch (const nb::python_error&) {
    throw;
  } catch (const nb::builtin_exception&) {
    throw;
  } catch (const ConfigError& problem) {
    PyErr_SetString(PyExc_ValueError, printable(problem.what()).c_str());
  } catch (const DataError& problem) {
    PyErr_SetString(data_error, printable(problem.what()).c_str());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& problem) {
    PyErr_SetString(PyExc_RuntimeError, printable(problem.what()).c_str());
  }
  throw nb::python_error();
}

void add_data_error(nb::module_& module) {
  data_error =
      PyErr_NewExceptionWithDoc("millrace.data.DataError",
                                "An unusable image. A stage function raises it to skip "
                                "its sample,\n"
                                "subject to `on_error`; `next` raises it if on_error=\"fail\".",
                                PyExc_RuntimeError, nullptr);
  if (!data_error) throw nb::python_error();
  module.attr("DataError") = nb::borrow(data_error);
}

bool is_data_error(const nb::python_error& error) { return error.matches(nb::handle(data_error)); }

}  // namespace millrace::python
