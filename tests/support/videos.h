// Small test videos, written by the writer that `trainer predict` uses.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "millrace/tools/video/open_video.h"

namespace millrace::testing {

using Pixels = std::vector<std::uint8_t>;

/// Draws a frame with a different colour in each quarter; the colours change with the frame number.
inline Pixels drawn_frame(int width, int height, int number) {
  Pixels pixels;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      pixels.push_back(x < width / 2 ? 200 : 20);
      pixels.push_back(y < height / 2 ? 180 : 30);
      pixels.push_back(static_cast<std::uint8_t>(number * 20 % 240));
    }
  return pixels;
}

/// Writes a video whose frames have the given times in ticks.
inline void write_video(const std::filesystem::path& file, int width, int height,
                        const std::vector<std::int64_t>& times, VideoClock clock = {1, 90000}) {
  const auto out = video_files().create(file.string(), width, height, clock);
  for (std::size_t k = 0; k < times.size(); ++k)
    out->write(drawn_frame(width, height, static_cast<int>(k)).data(), times[k]);
  out->finish();
}

/// Returns the times of `count` frames at 30 frames per second, in ticks of 1/90000 second.
inline std::vector<std::int64_t> even_times(int count) {
  std::vector<std::int64_t> times;
  for (int k = 0; k < count; ++k) times.push_back(3000 * k);
  return times;
}

}  // namespace millrace::testing
