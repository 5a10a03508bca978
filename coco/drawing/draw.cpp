#include "millrace/coco/drawing/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <opencv2/imgproc.hpp>

#include "millrace/base/errors.h"
#include "millrace/base/files.h"
#include "millrace/coco/picture/encode.h"

namespace millrace::coco {
namespace {

constexpr int kReadableSide = 480;     // pixels: images with a shorter side below this are enlarged
constexpr int kLongestSide = 1920;     // pixels: maximum longer side of an enlarged image
constexpr int kMostOfJpeg = 65500;     // pixels: maximum side that libjpeg writes
constexpr double kOpacity = 0.33;      // opacity of masks
constexpr double kTextOpacity = 0.85;  // opacity of the plates behind text
const cv::Vec3b kGround(32, 32, 32);   // background between pictures

/// Sizes in pixels that grow with the picture.
struct Style {
  explicit Style(cv::Size picture) {
    const double unit = std::max(1.0, std::min(picture.width, picture.height) / 600.0);
    line = static_cast<int>(std::lround(unit));
    text_height = static_cast<int>(std::lround(9 * unit));
    margin = std::max(2, static_cast<int>(std::lround(3 * unit)));
  }

  int line;         // line width of boxes and mask outlines
  int text_height;  // height of capital letters
  int margin;       // margin around text on its plate
};

/// Returns black or white, whichever has more contrast to `ground` (Rec. 709 luma).
cv::Vec3b contrasting(cv::Vec3b ground) {
  const double luma = 0.2126 * ground[0] + 0.7152 * ground[1] + 0.0722 * ground[2];
  return luma > 120 ? cv::Vec3b(0, 0, 0) : cv::Vec3b(255, 255, 255);
}

/// Renders text as coverage 0..255 with OpenCV's stroke fonts, antialiased by drawing it four times
/// as large.
cv::Mat1b render(const std::string& text, int height) {
  constexpr int over = 4;
  constexpr int font = cv::FONT_HERSHEY_DUPLEX;
  const double scale = cv::getFontScaleFromHeight(font, height * over, over);
  const int stroke = std::max(over, height * over / 10);
  int below = 0;
  const auto size = cv::getTextSize(text, font, scale, stroke, &below);
  cv::Mat1b large((height + height / 2) * over, size.width + 2 * over, std::uint8_t{0});
  cv::putText(large, text, {over, height * over + over / 2}, font, scale, 255, stroke, cv::LINE_AA);
  cv::Mat1b small;
  cv::resize(large, small, {large.cols / over, large.rows / over}, 0, 0, cv::INTER_AREA);
  return small;
}

/// Blends a colour into the picture with `coverage` times `opacity` as its alpha.
void blend(cv::Mat3b picture, const cv::Mat1b& coverage, cv::Vec3b colour, double opacity) {
  for (int y = 0; y < picture.rows; ++y)
    for (int x = 0; x < picture.cols; ++x) {
      const double share = opacity * coverage(y, x) / 255.0;
      for (int c = 0; c < 3; ++c) {
        auto& value = picture(y, x)[c];
        value = cv::saturate_cast<std::uint8_t>(value + share * (colour[c] - value));
      }
    }
}

/// A line of text on a coloured plate.
struct Plate {
  cv::Mat1b text;
  cv::Size size;

  Plate(const std::string& words, const Style& style)
      : text(render(words, style.text_height)),
        size(text.cols + 2 * style.margin, text.rows + style.margin) {}

  void draw(cv::Mat3b picture, cv::Point at, const Style& style, cv::Vec3b colour) const {
    const cv::Rect frame(cv::Point(), picture.size());
    const auto plate = cv::Rect(at, size) & frame;
    if (plate.empty()) return;
    blend(picture(plate), cv::Mat1b(plate.size(), std::uint8_t{255}), colour, kTextOpacity);
    const auto words = cv::Rect(at + cv::Point(style.margin, style.margin), text.size()) & plate;
    if (!words.empty())
      blend(picture(words), text(cv::Rect(cv::Point(), words.size())), contrasting(colour), 1);
  }
};

/// Returns the position of a plate near a box that covers the fewest pixels of the plates in
/// `taken`, and adds the plate to `taken`.
cv::Point place(cv::Size picture, cv::Size plate, const cv::Rect& box,
                std::vector<cv::Rect>& taken) {
  const int w = plate.width, h = plate.height;
  const std::array candidates = {
      cv::Point(box.x, box.y - h),                  // above, left
      cv::Point(box.x + box.width - w, box.y - h),  // above, right
      cv::Point(box.x, box.y + box.height),         // below
      cv::Point(box.x, box.y),                      // inside, at the top
      cv::Point(box.x + box.width, box.y),          // to the right
      cv::Point(box.x - w, box.y),                  // to the left
      cv::Point(box.x + box.width - w, box.y + box.height - h),
      cv::Point(box.x, box.y - 2 * h),
      cv::Point(box.x, box.y + box.height + h),
  };
  cv::Rect best;
  int least = std::numeric_limits<int>::max();
  for (auto at : candidates) {
    at.x = std::clamp(at.x, 0, std::max(0, picture.width - w));
    at.y = std::clamp(at.y, 0, std::max(0, picture.height - h));
    const cv::Rect here(at, plate);
    int hidden = 0;
    for (const auto& other : taken) hidden += (here & other).area();
    if (hidden < least) least = hidden, best = here;
    if (least == 0) break;
  }
  taken.push_back(best);
  return best.tl();
}

void draw_mask(cv::Mat3b& picture, const Rle& mask, cv::Vec3b colour, const Style& style) {
  cv::Mat1b inside(static_cast<int>(mask.height), static_cast<int>(mask.width));
  decode(mask, inside.data);
  inside *= 255;
  if (inside.size() != picture.size())
    cv::resize(inside, inside, picture.size(), 0, 0, cv::INTER_LINEAR);
  blend(picture, inside, colour, kOpacity);
  std::vector<std::vector<cv::Point>> outlines;
  cv::findContours(inside >= 128, outlines, cv::RETR_CCOMP, cv::CHAIN_APPROX_NONE);
  cv::drawContours(picture, outlines, -1, cv::Scalar(colour), style.line, cv::LINE_AA);
}

/// Draws a box, dashed for a crowd.
void draw_box(cv::Mat3b& picture, const cv::Rect& box, bool dashed, cv::Vec3b colour,
              const Style& style) {
  if (!dashed) return cv::rectangle(picture, box, cv::Scalar(colour), style.line);
  const int dash = 5 * style.line;
  const std::array corners = {box.tl(), cv::Point(box.br().x, box.y), box.br(),
                              cv::Point(box.x, box.br().y)};
  for (std::size_t side = 0; side < 4; ++side) {
    const cv::Point2d from = corners[side], step = cv::Point2d(corners[(side + 1) % 4]) - from;
    const double length = std::hypot(step.x, step.y);
    for (double at = 0; at < length; at += 2 * dash)
      cv::line(picture, from + step * (at / length),
               from + step * (std::min(at + dash, length) / length), cv::Scalar(colour),
               style.line);
  }
}

std::string caption(const Overlay& object, std::span<const std::string> names) {
  const auto label = static_cast<std::size_t>(object.label);
  auto text = label < names.size() ? names[label] : fmt::format("class {}", object.label);
  if (object.crowd) text += " (crowd)";
  return object.score < 0 ? text : fmt::format("{} {:.0f}%", text, 100 * object.score);
}

}  // namespace

cv::Vec3b label_colour(int label) {
  // Hues at golden angles never coincide; value and saturation vary as well.
  const double hue = std::fmod(0.55 + 0.6180339887498949 * label, 1.0) * 6;
  const double value = label % 3 == 1 ? 0.80 : 1.0, saturation = label % 2 == 1 ? 0.70 : 0.90;
  cv::Vec3b colour;
  for (int c = 0; c < 3; ++c) {
    // Converts the hue to red, green and blue, each a shifted trapezoid.
    const double k = std::fmod(5 - 2 * c + hue, 6.0);
    const double share = 1 - saturation * std::clamp(std::min(k, 4 - k), 0.0, 1.0);
    colour[c] = cv::saturate_cast<std::uint8_t>(255 * value * share);
  }
  return colour;
}

cv::Mat draw_objects(const cv::Mat& image, std::span<const Overlay> objects,
                     std::span<const std::string> names) {
  const double shorter = std::min(image.cols, image.rows);
  const double longer = std::max(image.cols, image.rows);
  const double zoom = std::max(1.0, std::min(kReadableSide / shorter, kLongestSide / longer));
  cv::Mat3b picture;
  cv::resize(image, picture, {}, zoom, zoom, cv::INTER_CUBIC);
  const Style style(picture.size());
  const auto frame = [&](const Box& box) {
    const cv::Point2d low(box.x1 * zoom, box.y1 * zoom), high(box.x2 * zoom, box.y2 * zoom);
    return cv::Rect(cv::Point(low), cv::Point(high)) & cv::Rect(cv::Point(), picture.size());
  };

  std::vector<const Overlay*> order;  // larger objects first, so that smaller ones stay visible
  for (const Overlay& object : objects) order.push_back(&object);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [](const Overlay* object) { return object->box.area(); });
  for (const auto* object : order)
    if (!object->mask.counts.empty())
      draw_mask(picture, object->mask, label_colour(object->label), style);
  for (const auto* object : order)
    draw_box(picture, frame(object->box), object->crowd, label_colour(object->label), style);
  std::vector<cv::Rect> taken;
  for (const auto* object : order) {
    const Plate plate(caption(*object, names), style);
    plate.draw(picture, place(picture.size(), plate.size, frame(object->box), taken), style,
               label_colour(object->label));
  }
  return picture;
}

cv::Mat side_by_side(const cv::Mat& left, std::string_view left_title, const cv::Mat& right,
                     std::string_view right_title) {
  const Style style(left.size());
  const Plate titles[] = {Plate(std::string(left_title), style),
                          Plate(std::string(right_title), style)};
  const int head = titles[0].size.height + style.margin, gap = 2 * style.margin;
  cv::Mat3b both(head + std::max(left.rows, right.rows), left.cols + gap + right.cols, kGround);
  left.copyTo(both(cv::Rect(cv::Point(0, head), left.size())));
  right.copyTo(both(cv::Rect(cv::Point(left.cols + gap, head), right.size())));
  titles[0].draw(both, {0, 0}, style, kGround);
  titles[1].draw(both, {left.cols + gap, 0}, style, kGround);
  return both;
}

cv::Mat above(const cv::Mat& top, const cv::Mat& bottom) {
  const int gap = 2 * Style(top.size()).margin;
  cv::Mat3b both(top.rows + gap + bottom.rows, std::max(top.cols, bottom.cols), kGround);
  top.copyTo(both(cv::Rect(cv::Point(0, 0), top.size())));
  bottom.copyTo(both(cv::Rect(cv::Point(0, top.rows + gap), bottom.size())));
  return both;
}

std::vector<Overlay> overlays(const Dataset& truth, const Image& image) {
  const auto height = static_cast<std::uint32_t>(image.height),
             width = static_cast<std::uint32_t>(image.width);
  std::vector<Overlay> result;
  for (const auto& object : truth.objects(image)) {
    const auto [x, y, w, h] = object.bbox;
    Overlay overlay{.box = {float(x), float(y), float(x + w), float(y + h)},
                    .label = truth.category_index(object.category_id),
                    .crowd = object.crowd};
    if (object.shape.kind != ShapeKind::none)
      overlay.mask = mask_of(truth.segmentation(object), height, width);
    result.push_back(std::move(overlay));
  }
  return result;
}

void write_picture(const std::filesystem::path& file, const cv::Mat& picture) {
  const auto kind = file.extension();
  if (kind == ".png") return write_file_atomically(file, encode_png(picture));
  if (kind != ".jpg" && kind != ".jpeg")
    throw Error(file.string() + ": cannot write this picture; use .jpg or .png");
  cv::Mat fitting = picture;
  if (const auto longer = std::max(picture.cols, picture.rows); longer > kMostOfJpeg) {
    const double share = double(kMostOfJpeg) / longer;
    const auto shrunk = [&](int side) { return std::max(1, static_cast<int>(side * share)); };
    cv::resize(picture, fitting, {shrunk(picture.cols), shrunk(picture.rows)}, 0, 0,
               cv::INTER_AREA);
  }
  write_file_atomically(file, encode_jpeg(fitting, 92));
}

}  // namespace millrace::coco
