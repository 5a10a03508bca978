#include <algorithm>
#include <cstring>
#include <map>
#include <vector>

#include "millrace/tools/video/files/libav.h"

namespace millrace {
namespace {

struct CloseOutput {
  void operator()(AVFormatContext* one) const {
    if (one->pb) avio_closep(&one->pb);
    avformat_free_context(one);
  }
};
using UniqueOutput = std::unique_ptr<AVFormatContext, CloseOutput>;

UniqueOutput open_output(const std::string& file) {
  AVFormatContext* context = nullptr;
  checked(avformat_alloc_output_context2(&context, nullptr, "mp4", file.c_str()),
          "cannot be written");
  UniqueOutput output(context);
  output->flags |= AVFMT_FLAG_BITEXACT;  // omits version and date: reproducible bytes
  checked(avio_open(&output->pb, ("file:" + file).c_str(), AVIO_FLAG_WRITE), "cannot be written");
  return output;
}

const AVCodec& encoder_codec() {
  if (const auto* codec = avcodec_find_encoder_by_name("libx264")) return *codec;
  if (const auto* codec = avcodec_find_encoder(AV_CODEC_ID_MPEG4)) return *codec;
  throw std::runtime_error(
      "cannot be written: the installed FFmpeg libraries have no encoder for H.264 or MPEG-4");
}

int even(int side) { return side + side % 2; }

class Writer final : public VideoWriter {
 public:
  Writer(const std::string& file, int width, int height, VideoClock clock)
      : width_(width), height_(height), clock_{clock.numerator, clock.denominator} {
    open_encoder();
    output_ = open_output(file);
    stream_ = checked(avformat_new_stream(output_.get(), nullptr));
    checked(avcodec_parameters_from_context(stream_->codecpar, encoder_.get()),
            "cannot be written");
    stream_->time_base = encoder_->time_base;
    checked(avformat_write_header(output_.get(), nullptr), "cannot be written");
    frame_->format = encoder_->pix_fmt;
    frame_->width = encoder_->width;
    frame_->height = encoder_->height;
    checked(av_frame_get_buffer(frame_.get(), 0), "cannot be written");
    scaler_.reset(checked(sws_getContext(encoder_->width, encoder_->height, AV_PIX_FMT_RGB24,
                                         encoder_->width, encoder_->height, encoder_->pix_fmt,
                                         kScaling, nullptr, nullptr, nullptr)));
    const auto* table = sws_getCoefficients(SWS_CS_ITU709);
    sws_setColorspaceDetails(scaler_.get(), table, 1, table, 0, 0, 1 << 16, 1 << 16);
    padded_.resize(static_cast<std::size_t>(frame_->width) *
                   static_cast<std::size_t>(frame_->height) * 3);
  }

  void write(const std::uint8_t* rgb, std::int64_t time) override {
    const auto pts = std::max(av_rescale_q(time, clock_, encoder_->time_base), last_ + 1);
    if (count_++ > 0) encode_last(pts - last_);
    last_ = pts;
    checked(av_frame_make_writable(frame_.get()), "cannot be written");
    pad(rgb);
    const std::uint8_t* const planes[4] = {padded_.data(), nullptr, nullptr, nullptr};
    const int strides[4] = {3 * frame_->width, 0, 0, 0};
    sws_scale(scaler_.get(), planes, strides, 0, frame_->height, frame_->data, frame_->linesize);
  }

  void finish() override {
    if (count_ > 0) encode_last(lasts_);
    encode(nullptr);
    checked(av_write_trailer(output_.get()), "cannot be written");
    checked(avio_closep(&output_->pb), "cannot be written");
  }

 private:
  void open_encoder() {
    const auto& codec = encoder_codec();
    encoder_.reset(checked(avcodec_alloc_context3(&codec)));
    // YUV420P has half the chroma resolution in both directions, so sides must be even.
    encoder_->width = even(width_);
    encoder_->height = even(height_);
    encoder_->pix_fmt = AV_PIX_FMT_YUV420P;
    encoder_->time_base = clock_;
    encoder_->thread_count = 2;
    encoder_->flags |= AV_CODEC_FLAG_BITEXACT | AV_CODEC_FLAG_GLOBAL_HEADER;
    encoder_->colorspace = AVCOL_SPC_BT709;
    encoder_->color_primaries = AVCOL_PRI_BT709;
    encoder_->color_trc = AVCOL_TRC_BT709;
    encoder_->color_range = AVCOL_RANGE_MPEG;
    AVDictionary* options = nullptr;
    if (codec.id == AV_CODEC_ID_H264) {
      av_dict_set(&options, "preset", "veryfast", 0);
      av_dict_set(&options, "crf", "20", 0);
    } else {
      constexpr int kFinest = 65535;  // maximum ticks per second in MPEG-4
      if (clock_.den > kFinest) encoder_->time_base = {1, kFinest};
      encoder_->flags |= AV_CODEC_FLAG_QSCALE;
      encoder_->global_quality = 3 * FF_QP2LAMBDA;
    }
    const int opened = avcodec_open2(encoder_.get(), &codec, &options);
    av_dict_free(&options);
    checked(opened, "cannot be written as " + std::string(codec.name));
  }

  /// Repeats the last column or row if a side is odd.
  void pad(const std::uint8_t* rgb) {
    const auto row = static_cast<std::size_t>(width_) * 3,
               padded_row = static_cast<std::size_t>(frame_->width) * 3;
    for (int y = 0; y < frame_->height; ++y) {
      const auto* from = rgb + static_cast<std::size_t>(std::min(y, height_ - 1)) * row;
      auto* to = padded_.data() + static_cast<std::size_t>(y) * padded_row;
      std::memcpy(to, from, row);
      if (padded_row > row) std::memcpy(to + row, from + row - 3, 3);
    }
  }

  /// Encodes the frame that was written last, once its duration is known. Players skip frames with
  /// a duration of 0.
  void encode_last(std::int64_t lasts) {
    lasts_ = lasts;
    durations_[last_] = lasts;
    frame_->pts = last_;
    encode(frame_.get());
  }

  void encode(const AVFrame* frame) {
    checked(avcodec_send_frame(encoder_.get(), frame), "cannot be written");
    for (;;) {
      const int got = avcodec_receive_packet(encoder_.get(), packet_.get());
      if (got == AVERROR(EAGAIN) || got == AVERROR_EOF) return;
      checked(got, "cannot be written");
      if (const auto known = durations_.extract(packet_->pts)) packet_->duration = known.mapped();
      av_packet_rescale_ts(packet_.get(), encoder_->time_base, stream_->time_base);
      packet_->stream_index = stream_->index;
      checked(av_interleaved_write_frame(output_.get(), packet_.get()), "cannot be written");
    }
  }

  const int width_, height_;
  const AVRational clock_;
  UniqueCodec encoder_;
  UniqueOutput output_;
  AVStream* stream_ = nullptr;
  const UniqueFrame frame_{checked(av_frame_alloc())};
  const UniquePacket packet_{checked(av_packet_alloc())};
  UniqueScaler scaler_;
  std::vector<std::uint8_t> padded_;
  std::int64_t count_ = 0, last_ = -1, lasts_ = 1;  // time and duration of the last frame
  std::map<std::int64_t, std::int64_t> durations_;  // durations of frames in the encoder, by time
};

}  // namespace

std::unique_ptr<VideoWriter> create_video_file(const std::string& file, int width, int height,
                                               VideoClock clock) {
  av_log_set_level(AV_LOG_QUIET);  // errors are thrown instead
  return std::make_unique<Writer>(file, width, height, clock);
}

}  // namespace millrace
