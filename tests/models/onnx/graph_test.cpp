// The rules of onnx::Graph, and the files that it writes, decoded by a minimal protobuf reader.
#include <ATen/ops/arange.h>
#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include <stdexcept>

#include "millrace/base/files.h"
#include "millrace/models/onnx/operations.h"
#include "millrace/models/weights/parameters.h"
#include "tests/support/scratch.h"

namespace millrace::testing {
namespace {

using onnx::Graph;
using onnx::Type;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The fields of a protobuf message: varints as numbers, the rest as bytes.
struct Fields {
  std::multimap<int, std::uint64_t> numbers;
  std::multimap<int, std::string> texts;

  explicit Fields(std::string_view bytes) {
    const auto varint = [&bytes] {
      std::uint64_t value = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(bytes.at(0));
        bytes.remove_prefix(1);
        value |= std::uint64_t{byte & 0x7FU} << shift;
        if (byte < 0x80) return value;
      }
    };
    while (!bytes.empty()) {
      const auto key = varint();
      const auto field = static_cast<int>(key >> 3), kind = static_cast<int>(key & 7);
      if (kind == 0) {
        numbers.emplace(field, varint());
      } else {
        const auto size = kind == 2 ? varint() : kind == 1 ? 8 : 4;
        texts.emplace(field, bytes.substr(0, size));
        bytes.remove_prefix(size);
      }
    }
  }

  std::vector<Fields> messages(int field) const {
    std::vector<Fields> result;
    for (auto [at, end] = texts.equal_range(field); at != end; ++at)
      result.emplace_back(at->second);
    return result;
  }
  std::string text(int field) const { return texts.find(field)->second; }
  std::uint64_t number(int field) const { return numbers.find(field)->second; }
};

std::vector<std::string> texts_of(const std::vector<Fields>& messages, int field) {
  std::vector<std::string> result;
  for (const auto& message : messages) result.push_back(message.text(field));
  return result;
}

struct OneLayer {
  Parameters parameters;
  at::Tensor weight = parameters.add("head.weight", at::arange(6).to(at::kFloat).view({2, 3}),
                                     ParameterKind::weight);

  void build(Graph& graph) const {
    const auto x = graph.input("x", Type::f32, {"rows", std::int64_t{2}}, "numbers");
    const auto in = graph.in("head");
    const auto y = graph.add("MatMul", {x, graph.parameter(weight)});
    graph.output("y", onnx::apply("Relu", y) + 1.5, {"rows", std::int64_t{3}}, "more numbers");
  }
};

TEST(Graph, WritesOpsetNodesAndParameters) {
  const Scratch scratch;
  const OneLayer layer;
  Graph graph(layer.parameters);
  layer.build(graph);
  const auto files = graph.write(scratch / "m.onnx", {"one", "doc", "0.1", {{"key", "value"}}});
  EXPECT_THAT(files, ElementsAre(scratch / "m.onnx"));

  const Fields model(read_file(scratch / "m.onnx"));
  EXPECT_EQ(model.number(1), 8U);                  // ir_version
  EXPECT_EQ(model.messages(8)[0].number(2), 17U);  // opset
  EXPECT_EQ(model.messages(14)[0].text(2), "value");
  const auto body = model.messages(7)[0];
  EXPECT_THAT(texts_of(body.messages(1), 4), ElementsAre("MatMul", "Relu", "Add", "Identity"));
  EXPECT_THAT(texts_of(body.messages(1), 3),
              ElementsAre("head/MatMul", "head/Relu", "head/Add", "y/Identity"));
  EXPECT_EQ(body.messages(5)[0].text(8), "head.weight");
  EXPECT_EQ(body.messages(5)[0].text(9),
            std::string(static_cast<const char*>(layer.weight.const_data_ptr()), 24));
  EXPECT_EQ(body.messages(11)[0].text(1), "x");
  EXPECT_EQ(body.messages(12)[0].text(1), "y");
}

TEST(Graph, WritesEqualBytesForEqualLayers) {
  const Scratch scratch;
  const OneLayer layer;
  for (const auto* name : {"a.onnx", "b.onnx"}) {
    Graph graph(layer.parameters);
    layer.build(graph);
    graph.write(scratch / name, {"one", "", "0.1", {}});
  }
  EXPECT_EQ(read_file(scratch / "a.onnx"), read_file(scratch / "b.onnx"));
}

TEST(Graph, StoresSharedParameterOnce) {
  const Scratch scratch;
  const OneLayer layer;
  Graph graph(layer.parameters);
  EXPECT_EQ(graph.parameter(layer.weight).name, graph.parameter(layer.weight).name);
  EXPECT_EQ(graph.layer_of(layer.weight), "head");
}

TEST(Graph, CastsFp16WeightsAtUse) {
  const Scratch scratch;
  const OneLayer layer;
  Graph graph(layer.parameters, onnx::Storage::fp16);
  layer.build(graph);
  graph.write(scratch / "m.onnx", {"one", "", "0.1", {}});
  const auto body = Fields(read_file(scratch / "m.onnx")).messages(7)[0];
  EXPECT_EQ(texts_of(body.messages(1), 4).front(), "Cast");
  EXPECT_EQ(body.messages(5)[0].number(2), 10U);  // FLOAT16
  EXPECT_EQ(body.messages(5)[0].text(9).size(), 12U);
}

TEST(Graph, StoresTensorsOfLargeModelsExternally) {
  const Scratch scratch;
  Parameters parameters;
  const auto large = parameters.add("large", at::ones({1000}), ParameterKind::weight),
             small = parameters.add("small", at::ones({2}), ParameterKind::weight);
  Graph graph(parameters);
  const auto x = graph.input("x", Type::f32, {std::int64_t{1}}, "");
  graph.output("y", x + graph.parameter(large), {std::int64_t{1000}}, "");
  graph.output("z", x + graph.parameter(small), {std::int64_t{2}}, "");
  const auto files = graph.write(scratch / "m.onnx", {"one", "", "0.1", {}}, /*inline_bytes=*/100);
  EXPECT_THAT(files, ElementsAre(scratch / "m.onnx", scratch / "m.onnx.data"));
  const auto tensors = Fields(read_file(scratch / "m.onnx")).messages(7)[0].messages(5);
  EXPECT_EQ(tensors[0].number(14), 1U);  // EXTERNAL
  EXPECT_THAT(texts_of(tensors[0].messages(13), 1), ElementsAre("location", "offset", "length"));
  EXPECT_THAT(texts_of(tensors[0].messages(13), 2), ElementsAre("m.onnx.data", "0", "4000"));
  EXPECT_EQ(tensors[1].text(9).size(), 8U);  // small tensors stay in the model file
  EXPECT_EQ(std::filesystem::file_size(scratch / "m.onnx.data") % 4096, 0U);
}

TEST(Graph, RejectsInvalidNodes) {
  const Parameters none;
  Graph graph(none), other(none);
  const auto x = graph.input("x", Type::f32, {std::int64_t{1}}, "");
  EXPECT_THROW(graph.add("If", {x}), std::logic_error);
  EXPECT_THROW(graph.add("Relu", {x, x}), std::logic_error);
  EXPECT_THROW(graph.add("Relu", {other.input("x", Type::f32, {}, "")}), std::logic_error);
  EXPECT_THROW(graph.input("x", Type::f32, {}, ""), std::logic_error);
  EXPECT_THROW(graph.parameter(at::ones({1})), std::logic_error);
}

TEST(Graph, ReturnsSeveralOutputsInOrder) {
  const Scratch scratch;
  const Parameters none;
  Graph graph(none);
  const auto x = graph.input("x", Type::i64, {std::int64_t{5}}, "");
  const auto parts = graph.add_several("Split", {x, graph.ints({2, 3})},
                                       {{"axis", std::int64_t{0}}}, {Type::i64, Type::i64});
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[1].type, Type::i64);
  graph.output("first", parts[0], {std::int64_t{2}}, "");
  graph.output("last", parts[1], {std::int64_t{3}}, "");
  graph.write(scratch / "m.onnx", {"one", "", "0.1", {}});
  const auto nodes = Fields(read_file(scratch / "m.onnx")).messages(7)[0].messages(1);
  EXPECT_EQ(nodes[0].text(4), "Split");
  EXPECT_EQ(nodes[0].messages(5)[0].text(1), "axis");
  EXPECT_EQ(nodes[1].text(1), parts[0].name);
  EXPECT_EQ(nodes[2].text(1), parts[1].name);
}

TEST(Graph, NumbersNodesOfSameType) {
  const Parameters none;
  Graph graph(none);
  const auto x = graph.input("x", Type::f32, {std::int64_t{1}}, "");
  const auto in = graph.in("a");
  EXPECT_EQ(onnx::apply("Relu", x).name, "a/Relu");
  EXPECT_EQ(onnx::apply("Relu", x).name, "a/Relu_1");
}

}  // namespace
}  // namespace millrace::testing
