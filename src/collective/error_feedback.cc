#include "gradwire/error_feedback.h"

#include <cmath>
#include <new>
#include <string>
#include <utility>

#include "collective/error_feedback_impl.h"
#include "core/dtype_traits.h"
#include "core/fp_environment.h"
#include "core/status_macros.h"

namespace gradwire {
namespace {

using internal::feedback_error;

Error range_error(std::string field, double value, const std::string& range) {
  Error error = feedback_error(ErrorCode::kOutOfRange, field,
                               field + " is " + std::to_string(value) + ", must be " + range);
  error.mine = std::to_string(value);
  return error;
}

Status check_residual(const ErrorFeedback::Residual& residual, bool momentum) {
  const ConstTensorView& values = residual.values;
  const ConstTensorView& velocities = residual.velocities;
  if (values.dtype != DType::kFloat32 && values.dtype != DType::kFloat64) {
    return feedback_error(
        ErrorCode::kUnsupportedDType, "dtype",
        "residuals are float32 or float64, not " + std::string(dtype_name(values.dtype)));
  }
  const std::string parameter = " of parameter " + std::to_string(residual.tensor);
  if (velocities.count != 0) {
    if (!momentum) {
      return feedback_error(ErrorCode::kInvalidArgument, "velocities",
                            "there are velocities" + parameter + ", but there is no momentum");
    }
    if (velocities.count != values.count || velocities.dtype != values.dtype) {
      return feedback_error(ErrorCode::kInvalidArgument, "velocities",
                            std::to_string(velocities.count) + " velocities" + parameter + " for " +
                                std::to_string(values.count) + " residuals, or of another type");
    }
  }
  for (const ConstTensorView* view : {&values, &velocities}) {
    if (view->count == 0) continue;
    if (view->data == nullptr) {
      return feedback_error(ErrorCode::kInvalidArgument, "data", "no values in memory" + parameter);
    }
    if (!internal::all_finite(*view)) {
      return feedback_error(ErrorCode::kInvalidArgument, view == &values ? "values" : "velocities",
                            "a value kept" + parameter + " is not finite");
    }
  }
  return {};
}

void scale_all(DType dtype, double factor, std::vector<std::byte>& values) noexcept {
  internal::with_dtype(dtype, [&]<typename Type>(Type) {
    using Sum = typename Type::Sum;
    for (std::uint64_t i = 0; i < values.size() / sizeof(Sum); ++i) {
      // In float64, so that a factor beyond float32 is one too; rounded once.
      const Sum scaled =
          static_cast<Sum>(static_cast<double>(internal::load<Sum>(values.data(), i)) * factor);
      internal::store(values.data(), i, scaled - scaled == 0 ? scaled : Sum{0});
    }
  });
}

}  // namespace

namespace internal {

Error feedback_error(ErrorCode code, std::string field, std::string message) {
  Error error;
  error.code = code;
  error.field = std::move(field);
  error.message = "error feedback: " + std::move(message);
  return error;
}

bool all_finite(const ConstTensorView& view) noexcept {
  bool finite = true;
  with_dtype(view.dtype, [&]<typename Type>(Type) {
    const auto* values = static_cast<const std::byte*>(view.data);
    for (std::uint64_t i = 0; i < view.count; ++i) {
      finite = finite && magnitude<Type>(load<typename Type::Bits>(values, i)) < Type::kInf;
    }
  });
  return finite;
}

}  // namespace internal

ErrorFeedback::ErrorFeedback() noexcept = default;
ErrorFeedback::ErrorFeedback(const ErrorFeedbackSettings& settings) noexcept
    : settings_(settings) {}
ErrorFeedback::~ErrorFeedback() = default;
ErrorFeedback::ErrorFeedback(ErrorFeedback&&) noexcept = default;
ErrorFeedback& ErrorFeedback::operator=(ErrorFeedback&&) noexcept = default;

Status ErrorFeedback::check(const ErrorFeedbackSettings& settings) {
  // Written so that NaN fails.
  if (!(settings.beta > 0 && settings.beta <= 1)) {
    return range_error("beta", settings.beta, "above 0 and at most 1");
  }
  if (!(settings.momentum >= 0 && settings.momentum < 1)) {
    return range_error("momentum", settings.momentum, "at least 0 and below 1");
  }
  return {};
}

ErrorFeedback::Impl& ErrorFeedback::impl() {
  if (impl_ == nullptr) impl_ = std::make_unique<Impl>();
  return *impl_;
}

std::vector<ErrorFeedback::Residual> ErrorFeedback::residuals() const {
  std::vector<Residual> all;
  if (impl_ == nullptr) return all;
  for (const auto& [key, entry] : impl_->entries) {
    const std::size_t size = dtype_size(entry.dtype);
    Residual residual{key.first, key.second, {}, {}};
    residual.values = {entry.residuals.data(), entry.residuals.size() / size, entry.dtype};
    if (!entry.velocities.empty()) {
      residual.velocities = {entry.velocities.data(), entry.velocities.size() / size, entry.dtype};
    }
    all.push_back(residual);
  }
  return all;
}

Status ErrorFeedback::restore(const Residual& residual) {
  GRADWIRE_RETURN_IF_ERROR(check_residual(residual, settings_.momentum != 0));
  if (residual.values.count == 0) return {};  // what is empty has no residuals
  try {
    Impl::Entry entry;
    entry.dtype = residual.values.dtype;
    const std::size_t bytes = residual.values.count * dtype_size(entry.dtype);
    const auto* values = static_cast<const std::byte*>(residual.values.data);
    entry.residuals.assign(values, values + bytes);
    if (settings_.momentum != 0) entry.velocities.resize(bytes);
    if (residual.velocities.count != 0) {
      const auto* velocities = static_cast<const std::byte*>(residual.velocities.data);
      entry.velocities.assign(velocities, velocities + bytes);
    }
    impl().runs.clear();  // they may point at what is replaced
    impl().entries.insert_or_assign({residual.tensor, residual.first_index}, std::move(entry));
    return {};
  } catch (const std::bad_alloc&) {
    return feedback_error(ErrorCode::kOutOfMemory, "", "no memory for the residuals");
  }
}

Status ErrorFeedback::scale(double factor) {
  if (!(factor > 0 && std::isfinite(factor))) {
    return range_error("factor", factor, "positive and finite");
  }
  if (impl_ == nullptr) return {};
  const internal::FpEnvironment fp_environment;
  for (auto& [key, entry] : impl_->entries) {
    scale_all(entry.dtype, factor, entry.residuals);
    scale_all(entry.dtype, factor, entry.velocities);
  }
  return {};
}

void ErrorFeedback::reset() noexcept { impl_.reset(); }

}  // namespace gradwire
