#include <memory>

#include "base/options_load.hpp"
#include "base/text.hpp"
#include "bindings/c/failure.hpp"
#include "bindings/c/handle.hpp"

namespace kedge::bindings {
namespace {

void set(Options& options, const char* name, const char* value) {
  if (name == nullptr) throw_argument("kedge_options_set: name must not be NULL");
  if (value == nullptr) throw_argument(compose("kedge_options_set: value must not be NULL (option {})", name));
  set_option(options, name, value);
}

}  // namespace
}  // namespace kedge::bindings

using namespace kedge;

extern "C" {

kedge_error kedge_options_load(kedge_options** options) {
  if (options == nullptr) return bindings::refuse("kedge_options_load: options must not be NULL");
  return bindings::run_and_catch([&] { *options = std::make_unique<kedge_options>(Options::load()).release(); });
}

kedge_error kedge_options_set(kedge_options* options, const char* name, const char* value) {
  if (options == nullptr) return bindings::refuse("kedge_options_set: options must not be NULL");
  return bindings::run_and_catch([&] {
    try {
      bindings::set(options->options, name, value);
    } catch (const std::exception& error) {
      // Only this rank returns it here; kedge_engine_new reports it on all.
      if (!options->options.load_failure) options->options.load_failure = to_failure(error);
      throw;
    }
  });
}

kedge_error kedge_options_get(const kedge_options* options, const char* name, char* buffer, size_t size,
                              size_t* length) {
  if (options == nullptr || name == nullptr || (buffer == nullptr && size != 0)) {
    return bindings::refuse(
        "kedge_options_get: options and name must not be NULL; buffer may be NULL only if size is 0");
  }
  return bindings::run_and_catch(
      [&] { bindings::copy_text(get_option(options->options, name), buffer, size, length); });
}

void kedge_options_free(kedge_options* options) { const std::unique_ptr<kedge_options> owned(options); }

}  // extern "C"
