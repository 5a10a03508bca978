// ONNX models, built node by node: layers add themselves to a graph with the names of their
// parameters, and the file needs no ONNX or protobuf library.
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

/// The type of a value's elements; numbers as in onnx.proto.
enum class Type { f32 = 1, u8 = 2, i32 = 6, i64 = 7, boolean = 9, f16 = 10, f64 = 11 };

class Graph;

/// A tensor of a graph, by name. Copies mean the same tensor; an empty name stands for an optional
/// input that is left out.
struct Value {
  Graph* graph = nullptr;
  std::string name;
  Type type = Type::f32;

  bool defined() const { return graph != nullptr; }
};

using Ints = std::vector<std::int64_t>;
using Attribute = std::variant<std::int64_t, float, std::string, Ints>;
using Attributes = std::vector<std::pair<std::string, Attribute>>;

/// A dimension of an input or output: a number, or a name for one that may vary.
using Dimension = std::variant<std::int64_t, std::string>;
using Dimensions = std::vector<Dimension>;

/// How the values of parameters are stored.
enum class Storage {
  fp32,
  fp16,  // cast to fp32 where they are used: half the file, the same arithmetic
};

/// A graph of the standard domain, opset 17. Every value that a node takes was made before: what
/// `add` is given wrongly (an operator that this opset lacks or that is not listed in graph.cpp,
/// too few or too many inputs, values of another graph) is a std::logic_error, as it is a mistake
/// in a layer.
class Graph {
 public:
  static constexpr std::int64_t kOpset = 17, kIrVersion = 8;

  /// `parameters` give the tensors of layers their names; borrowed.
  explicit Graph(const Parameters& parameters, Storage storage = Storage::fp32);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  Value input(const std::string& name, Type type, const Dimensions& shape, std::string doc);
  void output(const std::string& name, const Value& value, const Dimensions& shape,
              std::string doc);

  /// Adds a node; the result has the type of the first input, or `type`.
  Value add(const std::string& op, const std::vector<Value>& inputs,
            const Attributes& attributes = {}, std::optional<Type> type = {});
  /// Adds a node with several outputs.
  std::vector<Value> add_several(const std::string& op, const std::vector<Value>& inputs,
                                 const Attributes& attributes, const std::vector<Type>& types);

  /// A layer's tensor, under its name among the parameters.
  Value parameter(const at::Tensor& tensor);
  /// A constant tensor of float, int64, int32, bool or double.
  Value constant(const at::Tensor& tensor, const std::string& name);
  /// A number without dimensions, and a list of int64.
  Value scalar(double value, Type type);
  Value ints(const Ints& values);

  /// While it lives, nodes are named below it: "rpn/levels/TopK".
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

  /// "rpn.head.conv.0.0" for a parameter of the name "rpn.head.conv.0.0.weight".
  std::string layer_of(const at::Tensor& tensor) const;

  struct About {
    std::string name, doc, producer_version;
    std::map<std::string, std::string> metadata;
  };

  /// Writes the model, atomically. Tensors lie in FILE.data beside it where they take more than
  /// `inline_bytes` in all: a protocol buffer holds less than 2 GiB. Returns the files written.
  /// Throws Error if one cannot be written.
  std::vector<std::filesystem::path> write(const std::filesystem::path& file, const About& about,
                                           std::uint64_t inline_bytes = kInlineBytes) const;
  static constexpr std::uint64_t kInlineBytes = 1'900'000'000;

 private:
  struct Node {
    std::string op, name;
    std::vector<std::string> inputs, outputs;
    Attributes attributes;
  };
  struct Tensor {
    std::string name;
    Type type;
    Ints shape;
    at::Tensor values;  // contiguous, on the CPU
  };
  struct Port {
    std::string name;
    Type type;
    Dimensions shape;
    std::string doc;
  };

  std::string unique(const std::string& wanted);
  /// The name of a parameter.
  const std::string& name_of(const at::Tensor& tensor) const;
  Value store(const at::Tensor& tensor, const std::string& name);

  const Parameters& parameters_;
  Storage storage_;
  std::map<const void*, std::string> parameter_names_;  // by the tensor's implementation
  std::vector<Node> nodes_;
  std::vector<Tensor> tensors_;
  std::vector<Port> inputs_, outputs_;
  std::map<std::string, Value> shared_;  // constants and parameters, by what they are
  std::set<std::string> names_;
  std::map<std::string, int> counts_;  // of names asked for
  std::string place_;
};

}  // namespace millrace::onnx
