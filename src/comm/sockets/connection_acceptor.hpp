// Accepts connections of other ranks.
#pragma once

#include <poll.h>

#include <array>
#include <cstddef>
#include <list>
#include <vector>

#include "comm/sockets/connections.hpp"
#include "comm/sockets/frame.hpp"
#include "comm/sockets/socket.hpp"

namespace kedge::comm {

/// Accepts connections of ranks that send the job's token. Closes others: at once if they send something else, soon if
/// they send nothing, sooner if there are many.
class ConnectionAcceptor {
 public:
  /// Maximum number of connections that have not sent their greeting.
  static constexpr std::size_t kUnidentifiedMax = 64;
  static constexpr std::chrono::seconds kGreetingTimeout{5};

  /// `rank` is this rank, one of `size`.
  ConnectionAcceptor(Socket listener, int rank, int size, const Id128& token, const Id128& welcome);

  struct AcceptedRank {
    Socket socket;
    int from = 0;
  };
  /// Returns the ranks that have sent their greeting since the last call; a rank may be among them that is connected
  /// already.
  [[nodiscard]] std::vector<AcceptedRank> accept_ranks(SocketTime now);

  void add_poll_events(std::vector<::pollfd>& polled, SocketTime now) const;  ///< Adds what to poll for.
  /// Whether accepting may make progress without an event.
  [[nodiscard]] bool needs_progress(SocketTime now) const noexcept {
    return !unidentified_.empty() || now < paused_until_;
  }

 private:
  struct UnidentifiedConnection {
    Socket socket;
    SocketTime accepted_at;
    std::array<std::byte, sizeof(Greeting)> greeting{};
    std::size_t received_bytes = 0;
  };
  enum class Handshake : std::uint8_t { more, admitted, refused };

  void accept_connections(SocketTime now);
  [[nodiscard]] Handshake advance_handshake(UnidentifiedConnection& unknown) const;
  [[nodiscard]] bool is_from_job(const Greeting& greeting) const;

  Socket listener_;
  int rank_;
  int size_;
  Id128 token_;
  Id128 welcome_token_;
  std::list<UnidentifiedConnection> unidentified_;  ///< the oldest first
  SocketTime paused_until_{};                       ///< set when the system had no descriptors left
};

}  // namespace kedge::comm
