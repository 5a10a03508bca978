#include "millrace/models/onnx/graph.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

#include "millrace/base/files.h"
#include "millrace/base/proto_message.h"
#include "millrace/models/weights/parameters.h"

namespace millrace::onnx {
namespace {

/// Operators that layers use, as of opset 17, grouped by their number of inputs.
struct Arity {
  std::size_t least, most;
  std::set<std::string_view> operators;
};
const std::vector<Arity> kArities = {
    {1, 1, {"Abs",     "AveragePool", "Cast",       "Ceil",      "Cos",     "Erf",   "Exp",
            "Flatten", "Floor",       "Identity",   "Log",       "MaxPool", "Neg",   "NonZero",
            "Not",     "ReduceMax",   "ReduceMean", "ReduceMin", "Relu",    "Round", "Shape",
            "Sigmoid", "Sin",         "Softmax",    "Transpose"}},
    {1, 2, {"ReduceSum", "Split", "Squeeze"}},
    {1, 4, {"Resize"}},
    {1, SIZE_MAX, {"Concat", "Max", "Min"}},
    {2,
     2,
     {"Add", "And", "Div", "Equal", "Expand", "Gather", "GatherND", "GreaterOrEqual", "Greater",
      "GridSample", "Less", "MatMul", "Mod", "Mul", "Or", "Reshape", "Sub", "TopK", "Unsqueeze"}},
    {2, 3, {"Conv", "ConvTranspose", "Gemm", "LayerNormalization", "Pad"}},
    {2, 5, {"NonMaxSuppression"}},
    {3, 3, {"InstanceNormalization", "Range", "RoiAlign", "ScatterElements", "ScatterND", "Where"}},
    {3, 5, {"Slice"}},
    {5, 5, {"BatchNormalization"}},
};

// Field numbers of onnx.proto: of a model, its operator sets and a pair of texts,
constexpr int kModelIrVersion = 1, kProducer = 2, kProducerVersion = 3, kModelDoc = 6, kGraph = 7,
              kOpsets = 8, kMetadata = 14;
constexpr int kOpsetVersion = 2;
constexpr int kKey = 1, kValue = 2;
// of a graph, its nodes and their attributes,
constexpr int kNodes = 1, kGraphName = 2, kInitializers = 5, kGraphDoc = 10, kInputs = 11,
              kOutputs = 12;
constexpr int kNodeInput = 1, kNodeOutput = 2, kNodeName = 3, kNodeOp = 4, kNodeAttribute = 5;
constexpr int kAttributeName = 1, kFloat = 2, kInt = 3, kString = 4, kIntList = 8,
              kAttributeType = 20;
// and of a tensor, and an input or output with its type.
constexpr int kDims = 1, kDataType = 2, kTensorName = 8, kRawData = 9, kExternalData = 13,
              kDataLocation = 14;
constexpr int kPortName = 1, kPortType = 2, kPortDoc = 3;
constexpr int kTensorType = 1, kElementType = 1, kShape = 2, kDim = 1, kDimValue = 1, kDimName = 2;

// Values of an attribute's type, and of a data location.
constexpr int kFloatType = 1, kIntType = 2, kStringType = 3, kIntListType = 7;
constexpr int kExternal = 1;

constexpr std::pair<Type, at::ScalarType> kTypes[] = {
    {Type::f32, at::kFloat}, {Type::u8, at::kByte},      {Type::i32, at::kInt},
    {Type::i64, at::kLong},  {Type::boolean, at::kBool}, {Type::f16, at::kHalf},
    {Type::f64, at::kDouble}};

at::ScalarType torch_type(Type wanted) {
  for (const auto& [type, of_torch] : kTypes)
    if (type == wanted) return of_torch;
  throw std::logic_error("onnx: unsupported type");
}

Type type_of(const at::Tensor& tensor) {
  for (const auto& [type, of_torch] : kTypes)
    if (of_torch == tensor.scalar_type()) return type;
  throw std::logic_error("onnx: a tensor of this type cannot be stored");
}

std::string_view bytes_of(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

ProtoMessage pair_of(std::string_view key, std::string_view value) {
  return ProtoMessage().text(kKey, key).text(kValue, value);
}

ProtoMessage message_of(const std::string& name, const Attribute& attribute) {
  ProtoMessage message;
  message.text(kAttributeName, name);
  if (const auto* number = std::get_if<std::int64_t>(&attribute))
    message.number(kInt, *number).number(kAttributeType, kIntType);
  else if (const auto* real = std::get_if<float>(&attribute))
    message.single(kFloat, *real).number(kAttributeType, kFloatType);
  else if (const auto* text = std::get_if<std::string>(&attribute))
    message.text(kString, *text).number(kAttributeType, kStringType);
  else {
    for (const auto one : std::get<Ints>(attribute)) message.number(kIntList, one);
    message.number(kAttributeType, kIntListType);
  }
  return message;
}

/// Returns the message of an input or output.
std::string port(const std::string& name, Type type, const Dimensions& shape,
                 const std::string& doc) {
  ProtoMessage dims;
  for (const auto& dimension : shape) {
    ProtoMessage one;
    if (const auto* number = std::get_if<std::int64_t>(&dimension))
      one.number(kDimValue, *number);
    else
      one.text(kDimName, std::get<std::string>(dimension));
    dims.message(kDim, one);
  }
  ProtoMessage tensor;
  tensor.number(kElementType, static_cast<std::int64_t>(type)).message(kShape, dims);
  return ProtoMessage()
      .text(kPortName, name)
      .message(kPortType, ProtoMessage().message(kTensorType, tensor))
      .text(kPortDoc, doc)
      .bytes();
}

}  // namespace

Graph::Graph(const Parameters& parameters, Storage storage)
    : parameters_(parameters), storage_(storage) {
  for (const auto& parameter : parameters_)
    parameter_names_[parameter.value.unsafeGetTensorImpl()] = parameter.name;
}

Graph::Place::Place(Graph& graph, std::string_view name)
    : graph_(graph), length_(graph.place_.size()) {
  if (!graph.place_.empty()) graph.place_ += '/';
  graph.place_ += name;
}

Graph::Place::~Place() { graph_.place_.resize(length_); }

std::string Graph::unique(const std::string& wanted) {
  auto& count = counts_[wanted];
  for (;;) {
    auto name = count == 0 ? wanted : fmt::format("{}_{}", wanted, count);
    ++count;
    if (names_.insert(name).second) return name;
  }
}

Value Graph::input(const std::string& name, Type type, const Dimensions& shape,
                   const std::string& doc) {
  if (!names_.insert(name).second) throw std::logic_error("onnx: duplicate value name " + name);
  inputs_.push_back(port(name, type, shape, doc));
  return {this, name, type};
}

void Graph::output(const std::string& name, const Value& value, const Dimensions& shape,
                   const std::string& doc) {
  if (!names_.insert(name).second) throw std::logic_error("onnx: duplicate value name " + name);
  if (value.graph != this) throw std::logic_error("onnx: output belongs to another graph: " + name);
  append("Identity", name + "/Identity", {value.name}, {name}, {});
  outputs_.push_back(port(name, value.type, shape, doc));
}

std::vector<Value> Graph::add_several(const std::string& op, const std::vector<Value>& inputs,
                                      const Attributes& attributes,
                                      const std::vector<Type>& types) {
  const auto known = std::ranges::find_if(
      kArities, [&](const Arity& arity) { return arity.operators.contains(op); });
  if (known == kArities.end())
    throw std::logic_error("onnx: operator " + op + " is not listed (graph.cpp)");
  if (inputs.size() < known->least || inputs.size() > known->most)
    throw std::logic_error(fmt::format("onnx: {} does not take {} inputs", op, inputs.size()));
  const auto node = unique(place_.empty() ? op : place_ + "/" + op);
  std::vector<std::string> from, to;
  for (const auto& input : inputs) {
    if (input.graph != this && !input.name.empty())
      throw std::logic_error("onnx: " + node + " has an input of another graph");
    from.push_back(input.name);
  }
  std::vector<Value> results;
  for (std::size_t i = 0; i < types.size(); ++i) {
    // The first output has its node's name: names of nodes and of values are separate in ONNX.
    to.push_back(i == 0 ? node : unique(fmt::format("{}:{}", node, i)));
    results.push_back({this, to.back(), types[i]});
  }
  append(op, node, from, to, attributes);
  return results;
}

void Graph::append(const std::string& op, const std::string& name,
                   const std::vector<std::string>& inputs, const std::vector<std::string>& outputs,
                   const Attributes& attributes) {
  ProtoMessage message;
  for (const auto& input : inputs) message.text(kNodeInput, input);
  for (const auto& output : outputs) message.text(kNodeOutput, output);
  message.text(kNodeName, name).text(kNodeOp, op);
  for (const auto& [key, attribute] : attributes)
    message.message(kNodeAttribute, message_of(key, attribute));
  nodes_.push_back(message.bytes());
}

Value Graph::add(const std::string& op, const std::vector<Value>& inputs,
                 const Attributes& attributes, std::optional<Type> type) {
  if (!type && inputs.empty()) throw std::logic_error("onnx: " + op + " without inputs");
  return add_several(op, inputs, attributes, {type ? *type : inputs[0].type})[0];
}

Value Graph::store(const at::Tensor& tensor, const std::string& name) {
  const auto values = tensor.detach().cpu().contiguous(at::MemoryFormat::Contiguous);
  tensors_.emplace_back(unique(name), values);
  return {this, tensors_.back().first, type_of(values)};
}

const std::string& Graph::name_of(const at::Tensor& tensor) const {
  const auto found = parameter_names_.find(tensor.unsafeGetTensorImpl());
  if (found == parameter_names_.end())
    throw std::logic_error("onnx: the tensor is not a parameter of the model");
  return found->second;
}

Value Graph::parameter(const at::Tensor& tensor) {
  const auto& name = name_of(tensor);
  if (const auto shared = shared_.find(name); shared != shared_.end()) return shared->second;
  // Only weights are stored as fp16: scales, shifts and statistics are few, and may be too small
  // for its range.
  const bool narrow = storage_ == Storage::fp16 && tensor.dim() > 1;
  auto value = store(narrow ? tensor.to(at::kHalf) : tensor, name);
  if (narrow) {
    const auto outside = std::exchange(place_, name);
    value = add("Cast", {value}, {{"to", static_cast<std::int64_t>(Type::f32)}}, Type::f32);
    place_ = outside;
  }
  return shared_[name] = value;
}

std::string Graph::layer_of(const at::Tensor& tensor) const {
  const auto& name = name_of(tensor);
  return name.substr(0, name.rfind('.'));
}

Value Graph::constant(const at::Tensor& tensor, const std::string& name) {
  return store(tensor, place_.empty() ? name : place_ + "/" + name);
}

Value Graph::scalar(double value, Type type) {
  const auto name = fmt::format("{}:{}", value, static_cast<int>(type));
  if (const auto shared = shared_.find(name); shared != shared_.end()) return shared->second;
  return shared_[name] =
             store(at::full({}, value, at::TensorOptions(torch_type(type))), "constant/" + name);
}

Value Graph::ints(const Ints& values) {
  const auto name = fmt::format("[{}]", fmt::join(values, ","));
  if (const auto shared = shared_.find(name); shared != shared_.end()) return shared->second;
  return shared_[name] = store(at::tensor(values, at::kLong), "constant/" + name);
}

std::vector<std::filesystem::path> Graph::write(const std::filesystem::path& file,
                                                const About& about,
                                                std::uint64_t inline_bytes) const {
  std::uint64_t total = 0;
  for (const auto& [name, values] : tensors_) total += values.nbytes();
  const bool external = total > inline_bytes;
  constexpr std::uint64_t kSmall = 1024, kPage = 4096;  // small ones stay inline; mmap needs pages
  auto data_file = file;
  data_file += ".data";

  ProtoMessage graph;
  for (const auto& node : nodes_) graph.text(kNodes, node);
  graph.text(kGraphName, about.name);
  std::vector<std::string_view> outside;
  std::uint64_t offset = 0;
  static const std::string kZeros(kPage, '\0');
  for (const auto& [name, values] : tensors_) {
    ProtoMessage message;
    for (const auto side : values.sizes()) message.number(kDims, side);
    message.number(kDataType, static_cast<std::int64_t>(type_of(values))).text(kTensorName, name);
    const auto bytes = bytes_of(values);
    if (external && bytes.size() >= kSmall) {
      message.message(kExternalData, pair_of("location", data_file.filename().string()))
          .message(kExternalData, pair_of("offset", std::to_string(offset)))
          .message(kExternalData, pair_of("length", std::to_string(bytes.size())))
          .number(kDataLocation, kExternal);
      const auto rest = (kPage - bytes.size() % kPage) % kPage;
      outside.push_back(bytes);
      outside.push_back(std::string_view(kZeros).substr(0, rest));
      offset += bytes.size() + rest;
    } else {
      message.text(kRawData, bytes);
    }
    graph.message(kInitializers, message);
  }
  graph.text(kGraphDoc, about.doc);
  for (const auto& input : inputs_) graph.text(kInputs, input);
  for (const auto& output : outputs_) graph.text(kOutputs, output);

  ProtoMessage model;
  model.number(kModelIrVersion, kIrVersion)
      .text(kProducer, "millrace")
      .text(kProducerVersion, about.producer_version)
      .text(kModelDoc, about.doc)
      .message(kGraph, graph)
      .message(kOpsets, ProtoMessage().number(kOpsetVersion, kOpset));
  for (const auto& [key, value] : about.metadata) model.message(kMetadata, pair_of(key, value));

  std::vector<std::filesystem::path> written{file};
  if (external) {
    write_file_atomically(data_file, outside);
    written.push_back(data_file);
  }
  write_file_atomically(file, model.bytes());
  return written;
}

}  // namespace millrace::onnx
