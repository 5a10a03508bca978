// Names and layouts of a detector's tensors in other code bases. Our names are those of torchvision
// 0.13 and later; every other code base is a table that is used in both directions.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "millrace/models/weights/parameters.h"
#include "millrace/models/weights/safetensors.h"

namespace millrace {

/// The kind of a layer, which decides its tensors and their layout.
enum class LayerKind { conv, linear, norm };

/// The names of a layer, or the suffixes of a tensor of such layers. In a layer's name "{a}"
/// matches a number, "{a+1}" the next one.
struct NameRow {
  LayerKind kind;
  std::string ours, theirs;
};

struct Scheme {
  std::string_view name;
  std::string_view doc;
  std::vector<NameRow> layers = {};
  std::vector<NameRow> suffixes = {};
  // their prefix of backbone names that the table lacks and that otherwise equal ours
  std::optional<std::string_view> trunk = {};
  std::vector<std::string_view> same_as_ours = {};  // prefixes of names that equal ours
  bool kernels_last = false;  // kernels (H, W, in, out) and (in, out), as in TensorFlow
  // a convolution's bias may replace its norm, or a norm lack statistics
  bool folds_norms = false;

  Background background = Background::none;  // none = it has no classes
  bool background_has_mask = false;          // the mask head has a background
};

/// All schemes; the first one is ours.
const std::vector<Scheme>& schemes();
std::vector<std::string> scheme_names();

/// Throws ConfigError naming the nearest scheme, or all, if the name is unknown.
const Scheme& scheme_named(std::string_view name);

/// A tensor of a weight file under our name and in our layout.
struct StoredTensor {
  std::string stored_as;  // its name in the file; empty = only implied by the file
  std::string name;       // ours
  at::Tensor value;
  std::string without_norm = {};  // our name in a model without the folded norm; empty = none
};

struct TranslatedTensors {
  const Scheme* scheme;               // the scheme with most of the names; ours if none has any
  std::vector<StoredTensor> tensors;  // names unknown to the scheme are kept
  std::size_t known = 0;              // number of tensors with names of the scheme
};

/// Removes one wrapper from the start of a name: "module." (DistributedDataParallel), "_orig_mod."
/// (torch.compile) or "model.". Returns false if not found.
bool strip_wrapper(std::string_view& name);

/// Detects the scheme of the names and translates them. Drops all wrappers and all
/// "num_batches_tracked", a counter that no norm here has. If the scheme folds norms into
/// convolutions or omits their statistics, adds tensors that give the same result: weight 1, mean
/// 0, and variance 1 - 1e-5, with which norms of the usual epsilon 1e-5 scale by exactly 1 (others
/// are off by a factor below 1 + 5e-6).
TranslatedTensors in_our_names(const NamedTensors& tensors);

/// Translates our names to those of `scheme`. `unknown` receives names that the scheme does not
/// have, which are kept.
NamedTensors in_names_of(const Scheme& scheme, const NamedTensors& ours,
                         std::vector<std::string>& unknown);

}  // namespace millrace
