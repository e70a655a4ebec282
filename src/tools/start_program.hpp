// Programs that the command has do its work.
#pragma once

#include <string>
#include <vector>

namespace kedge::tools {

/// The path of a program that is installed beside this one. Throws Error{not_found}: `why` says what it needs.
[[nodiscard]] std::string path_of_program(const std::string& name, const std::string& why);

/// Becomes the program of the first word; does not return. Throws Error{io | not_found}: `advice` says what to do.
[[noreturn]] void become(std::vector<std::string> words, const std::string& advice);

}  // namespace kedge::tools
