// Batches of labelled images for a classifier. Uses the data flow engine with its own message
// types, and nothing from detection except the reading of image files.
//
//   classification FOLDER [BATCHES] [THREADS] [FROM]
//
// FOLDER contains one folder of images per class. Skips the first FROM batches and prints a line
// for each following batch: a hash of its pixels, then the label and mean brightness of each image.
#include <fmt/format.h>
#include <oneapi/tbb/global_control.h>

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <opencv2/imgproc.hpp>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataflow/engine/pipeline.h>
#include <millrace/dataflow/engine/source.h>
#include <millrace/dataflow/image/image_file.h>

namespace fs = std::filesystem;
using namespace millrace;

struct Picture {
  std::string path;
  int label = 0;
  cv::Mat image;  // [H, W, 3] 8-bit RGB; empty until decoded
};

struct LabelledBatch {
  int side = 0;
  std::vector<std::uint8_t> pixels;  // [N, side, side, 3]
  std::vector<int> labels;           // [N]
};

/// Returns the images of all classes. Labels are the indices of the class folders, sorted by name.
SourcePtr<Picture> pictures_in(const fs::path& folder) {
  std::vector<fs::path> classes;
  for (const auto& entry : fs::directory_iterator(folder))
    if (entry.is_directory()) classes.push_back(entry.path());
  std::ranges::sort(classes);
  std::vector<Picture> pictures;
  for (std::size_t label = 0; label < classes.size(); ++label)
    for (const auto& entry : fs::directory_iterator(classes[label]))
      pictures.push_back({entry.path().string(), static_cast<int>(label), {}});
  std::ranges::sort(pictures, {}, &Picture::path);
  return list(std::move(pictures));
}

Picture decode(Picture picture) {
  // Throws if the file is not an image; the flow then skips and counts it.
  picture.image = decode_rgb(read_image_file(picture.path), picture.path);
  return picture;
}

/// Resizes so that the shorter side is 1/8 longer than `side`, then crops a random square.
struct RandomCrop {
  int side = 64;

  Picture operator()(Picture picture, Rng& rng) const {
    const double scale = side * 1.125 / std::min(picture.image.cols, picture.image.rows);
    cv::Mat resized;
    cv::resize(picture.image, resized, {}, scale, scale, cv::INTER_AREA);
    const auto x = static_cast<int>(rng.between(0, resized.cols - side));
    const auto y = static_cast<int>(rng.between(0, resized.rows - side));
    picture.image = resized(cv::Rect(x, y, side, side)).clone();
    return picture;
  }
};

LabelledBatch stack(std::vector<Picture> pictures) {
  LabelledBatch batch{pictures.front().image.cols, {}, {}};
  for (const auto& picture : pictures) {
    const auto* first = picture.image.data;
    batch.pixels.insert(batch.pixels.end(), first, first + picture.image.total() * 3);
    batch.labels.push_back(picture.label);
  }
  return batch;
}

void print(const LabelledBatch& batch) {
  const std::string_view bytes(reinterpret_cast<const char*>(batch.pixels.data()),
                               batch.pixels.size());
  auto line = fmt::format("{:016x}", std::hash<std::string_view>()(bytes));
  const auto size = static_cast<std::size_t>(batch.side) * static_cast<std::size_t>(batch.side) * 3;
  for (std::size_t i = 0; i < batch.labels.size(); ++i) {
    const auto first = batch.pixels.begin() + static_cast<std::ptrdiff_t>(i * size);
    const auto sum = std::accumulate(first, first + static_cast<std::ptrdiff_t>(size), 0.0);
    line += fmt::format(" {}:{:.0f}", batch.labels[i], sum / static_cast<double>(size));
  }
  fmt::print("{}\n", line);
}

int main(int argc, char** argv) try {
  if (argc < 2)
    throw std::invalid_argument(
        "usage: classification FOLDER [BATCHES [THREADS [FROM]]]; FOLDER contains a folder of "
        "images per class");
  const auto number = [&](int k, int otherwise) {
    return argc > k ? std::stoi(argv[k]) : otherwise;
  };
  const auto batches = number(2, 10), threads = number(3, 2), from_batch = number(4, 0);
  // The number of TBB threads, including this one; the default is the number of cores.
  using oneapi::tbb::global_control;
  const global_control control(global_control::max_allowed_parallelism,
                               static_cast<std::size_t>(threads) + 1);

  const auto start = [source = pictures_in(argv[1]), threads](Cursor cursor) {
    return from(source)
        .map("decode", decode)
        .map("crop", RandomCrop{})
        .group(8)
        .map("stack", stack)
        .start({.shuffle = {true}, .epochs = 0, .threads = threads, .start = std::move(cursor)});
  };
  auto flow = start({});
  Cursor cursor;
  for (int i = 0; i < from_batch; ++i) cursor = flow->next()->cursor;
  flow = start(cursor);  // continues from a cursor like a resumed run
  for (int i = 0; i < batches; ++i) print(flow->next()->value);
  return 0;
} catch (const std::exception& problem) {
  fmt::print(stderr, "classification: {}\n", problem.what());
  return 1;
}
