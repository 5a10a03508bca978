// What code bases call the tensors of a detector, and how they lay them out. Ours are the names of
// torchvision (0.13 and later); each other code base is a table that is read in both directions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "millrace/weights/parameters.h"
#include "millrace/weights/safetensors.h"

namespace millrace {

/// What a row of a scheme names: it says which tensors belong to it, and how they are laid out.
enum class LayerKind { conv, linear, norm };

/// A layer's name, ours and theirs. "{a}" stands for a number; "{a+1}" for one that is greater by
/// one.
struct LayerName {
  LayerKind kind;
  std::string_view ours, theirs;
};

/// A tensor's name after its layer's, ours and theirs.
struct TensorSuffix {
  LayerKind kind;
  std::string_view ours, theirs;
};

struct Scheme {
  std::string_view name;
  std::string_view doc;
  std::vector<LayerName> layers;
  std::vector<TensorSuffix> suffixes;
  std::vector<std::string_view> same_as_ours = {};  // how the names begin that are ours, too
  bool kernels_last = false;  // kernels (H, W, in, out) and (in, out), as TensorFlow has them
  // A convolution's bias may stand for its norm, or a norm lack statistics
  bool folds_norms = false;

  // How it numbers classes; `none` where it knows no classes at all.
  Background background = Background::none;
  bool background_has_mask = false;  // the mask head gives the background a mask, too
};

/// Every scheme; the first one is ours.
const std::vector<Scheme>& schemes();

/// Throws ConfigError, listing all, where there is none of that name.
const Scheme& scheme_named(std::string_view name);

/// A tensor of a weight file under our name and in our layout.
struct StoredTensor {
  std::string stored_as;  // its name in the file; empty where the file only implies it
  std::string name;       // ours
  at::Tensor value;
};

struct TranslatedTensors {
  const Scheme* scheme;               // the one that knows most of the names; ours where none does
  std::vector<StoredTensor> tensors;  // names that the scheme does not know stay as they are
};

/// Finds out whose names these are. The wrappers "module." and "model." go, and so does
/// "num_batches_tracked", a counter that no norm here has. Where a scheme folds norms into
/// convolutions, or leaves their statistics out, what is missing is added so that it does what the
/// file means: weight 1, mean 0, and variance 1 - 1e-5, for which norms with the usual epsilon of
/// 1e-5 scale by exactly 1 (others are off by a factor of under 1 + 5e-6).
TranslatedTensors in_our_names(const NamedTensors& tensors);

/// The other way; `unknown` receives the names that the scheme has none for, which stay as they
/// are.
NamedTensors in_names_of(const Scheme& scheme, const NamedTensors& ours,
                         std::vector<std::string>& unknown);

}  // namespace millrace
