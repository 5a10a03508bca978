// What code bases call the tensors of a detector, and how they lay them out. Our names are those of
// torchvision 0.13 and later; every other code base is a table that is read in both directions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/models/weights/parameters.h"
#include "millrace/models/weights/safetensors.h"

namespace millrace {

/// Which tensors a layer has, and how they are laid out.
enum class LayerKind { conv, linear, norm };

/// The name of a layer, or the suffix of a tensor of such a layer. In a layer's name "{a}" stands
/// for a number, "{a+1}" for the next one.
struct NameRow {
  LayerKind kind;
  std::string_view ours, theirs;
};

struct Scheme {
  std::string_view name;
  std::string_view doc;
  std::vector<NameRow> layers = {};
  std::vector<NameRow> suffixes = {};
  // Their prefix of those names of the backbone that the table lacks, which otherwise equal ours
  std::optional<std::string_view> trunk = {};
  std::vector<std::string_view> same_as_ours = {};  // prefixes of names that equal ours
  bool kernels_last = false;  // kernels (H, W, in, out) and (in, out), as in TensorFlow
  // A convolution's bias may replace its norm, or a norm lack statistics
  bool folds_norms = false;

  Background background = Background::none;  // none: it has no classes
  bool background_has_mask = false;          // in the mask head
};

/// All schemes; the first one is ours.
const std::vector<Scheme>& schemes();
std::vector<std::string> scheme_names();

/// Throws ConfigError naming the nearest, or all, if the name is unknown.
const Scheme& scheme_named(std::string_view name);

/// A tensor of a weight file under our name and in our layout.
struct StoredTensor {
  std::string stored_as;  // its name in the file; empty: the file only implies it
  std::string name;       // ours
  at::Tensor value;
  std::string without_norm = {};  // our name in a model without the norm that was folded; or empty
};

struct TranslatedTensors {
  const Scheme* scheme;               // that knows most of the names; ours if none does
  std::vector<StoredTensor> tensors;  // names unknown to the scheme stay
  std::size_t known = 0;              // tensors whose names are the scheme's
};

/// Removes one wrapper from the start of a name: "module." (DistributedDataParallel), "_orig_mod."
/// (torch.compile) or "model.". False if there is none.
bool strip_wrapper(std::string_view& name);

/// Finds out whose names these are. Drops all wrappers and all "num_batches_tracked", a counter
/// that no norm here has. If the scheme folds norms into
/// convolutions or omits their statistics, adds what is missing to compute the same: weight 1, mean
/// 0, and variance 1 - 1e-5, for which norms with the usual epsilon of 1e-5 scale by exactly 1
/// (others are off by a factor below 1 + 5e-6).
TranslatedTensors in_our_names(const NamedTensors& tensors);

/// The other way; `unknown` receives names that the scheme does not have, which stay.
NamedTensors in_names_of(const Scheme& scheme, const NamedTensors& ours,
                         std::vector<std::string>& unknown);

}  // namespace millrace
