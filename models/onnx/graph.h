// ONNX models, built node by node: layers add nodes to a graph, with their parameters' names. Needs
// no ONNX or protobuf library.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace millrace {
class Parameters;
}

namespace millrace::onnx {

/// The type of a value's elements, with the numbers of onnx.proto.
enum class Type { f32 = 1, u8 = 2, i32 = 6, i64 = 7, boolean = 9, f16 = 10, f64 = 11 };

class Graph;

/// A tensor of a graph, by name. Copies refer to the same tensor; an empty name is an omitted
/// optional input.
struct Value {
  Graph* graph = nullptr;
  std::string name;
  Type type = Type::f32;

  bool defined() const { return graph != nullptr; }
};

using Ints = std::vector<std::int64_t>;
using Attribute = std::variant<std::int64_t, float, std::string, Ints>;
using Attributes = std::vector<std::pair<std::string, Attribute>>;

/// A dimension of an input or output: a number, or the name of a variable dimension.
using Dimension = std::variant<std::int64_t, std::string>;
using Dimensions = std::vector<Dimension>;

/// The storage type of parameters.
enum class Storage {
  fp32,
  fp16,  // cast to fp32 before use: half the file, the same arithmetic
};

/// A graph of the standard domain, opset 17. Nodes can only take values that were created before
/// them. Invalid arguments of `add` (an operator that this opset lacks or that is not listed in
/// graph.cpp, too few or too many inputs, values of another graph) are bugs of a layer and throw
/// std::logic_error.
class Graph {
 public:
  static constexpr std::int64_t kOpset = 17, kIrVersion = 8;

  /// Takes the names of tensors from `parameters`, which must outlive the graph.
  explicit Graph(const Parameters& parameters, Storage storage = Storage::fp32);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Value input(const std::string& name, Type type, const Dimensions& shape, const std::string& doc);
  void output(const std::string& name, const Value& value, const Dimensions& shape,
              const std::string& doc);

  /// Adds a node; the result has the type of the first input, or `type` if given.
  Value add(const std::string& op, const std::vector<Value>& inputs,
            const Attributes& attributes = {}, std::optional<Type> type = {});
  /// Adds a node with several outputs.
  std::vector<Value> add_several(const std::string& op, const std::vector<Value>& inputs,
                                 const Attributes& attributes, const std::vector<Type>& types);

  /// Returns a layer's tensor, under its name among the parameters.
  Value parameter(const at::Tensor& tensor);
  /// Returns a constant tensor of float, int64, int32, bool or double.
  Value constant(const at::Tensor& tensor, const std::string& name);
  /// Return a number without dimensions, and a list of int64.
  Value scalar(double value, Type type);
  Value ints(const Ints& values);

  /// Prefixes the names of nodes while it exists, e.g. "rpn/levels/TopK".
  class Place {
   public:
    Place(Graph& graph, std::string_view name);
    ~Place();
    Place(const Place&) = delete;

   private:
    Graph& graph_;
    std::size_t length_;
  };
  [[nodiscard]] Place in(std::string_view name) { return {*this, name}; }

  /// Returns a parameter's name without its last part, e.g. "rpn.head.conv.0.0" for
  /// "rpn.head.conv.0.0.weight".
  std::string layer_of(const at::Tensor& tensor) const;

  struct About {
    std::string name, doc, producer_version;
    std::map<std::string, std::string> metadata;
  };

  /// Writes the model atomically. Tensors are stored beside it in FILE.data if they take more than
  /// `inline_bytes` in all, as a protocol buffer holds less than 2 GiB. Returns the files written.
  /// Throws Error if a file cannot be written.
  std::vector<std::filesystem::path> write(const std::filesystem::path& file, const About& about,
                                           std::uint64_t inline_bytes = kInlineBytes) const;
  static constexpr std::uint64_t kInlineBytes = 1'900'000'000;

 private:
  std::string unique(const std::string& wanted);
  void append(const std::string& op, const std::string& name,
              const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
              const Attributes& attributes);
  /// Returns the name of a parameter.
  const std::string& name_of(const at::Tensor& tensor) const;
  Value store(const at::Tensor& tensor, const std::string& name);

  const Parameters& parameters_;
  Storage storage_;
  std::map<const void*, std::string> parameter_names_;       // keyed by TensorImpl
  std::vector<std::string> nodes_, inputs_, outputs_;        // protocol buffers
  std::vector<std::pair<std::string, at::Tensor>> tensors_;  // contiguous, on the CPU
  std::map<std::string, Value> shared_;  // constants and parameters, by content or name
  std::set<std::string> names_;
  std::map<std::string, int> counts_;  // how often each name was requested
  std::string place_;
};

}  // namespace millrace::onnx
