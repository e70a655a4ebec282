// Starts other programs in the command's place.
#pragma once

#include <string>
#include <vector>

namespace kedge::tools {

/// The path of a program installed beside this one. Throws Error{not_found}, in which `why` says what needs it.
[[nodiscard]] std::string path_of_program(const std::string& name, const std::string& why);

/// Replaces this process by the program of the first word. Throws Error{io | not_found} with `advice`.
[[noreturn]] void exec_program(std::vector<std::string> words, const std::string& advice);

}  // namespace kedge::tools
