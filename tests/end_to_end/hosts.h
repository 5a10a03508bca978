// Simulates hosts by network namespaces, each with a virtual cable.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "tests/cli/trainer.h"

namespace millrace::testing {

inline bool sh(const std::string& command) {
  return std::system((command + " 2>/dev/null").c_str()) == 0;
}

/// Creates hosts 0, 1, ... with addresses 10.77.0.1, 10.77.0.2, ..., connected to one switch, which
/// is a namespace too. The destructor removes them all.
class Hosts {
 public:
  explicit Hosts(int count = 3) : count_(count) {
    works_ = sh("ip netns add " + in(count_)) &&
             sh("ip -n " + in(count_) + " link add hub type bridge") &&
             sh("ip -n " + in(count_) + " link set hub up");
    for (int host = 0; works_ && host < count_; ++host) plug_in(host);
  }
  Hosts(const Hosts&) = delete;
  ~Hosts() {
    for (int host = 0; host <= count_; ++host) sh("ip netns del " + in(host));
  }

  bool works() const { return works_; }
  /// Plugs or unplugs the cable of a host.
  void link(int host, bool up) const {
    ASSERT_TRUE(
        sh("ip -n " + in(count_) + " link set p" + std::to_string(host) + (up ? " up" : " down")));
  }
  /// Delays a host's packets and drops some. Returns false if the kernel does not support this.
  bool disturb(int host) const {
    return sh("ip netns exec " + in(host) +
              " tc qdisc add dev eth0 root netem delay 5ms 2ms loss 1%");
  }
  static std::string address(int host) { return "10.77.0." + std::to_string(host + 1); }
  /// Returns the command that runs `command` in a host's network, but among the processes of this
  /// machine.
  Words beside(int host, Words command) const {
    command.insert(command.begin(), {"/usr/bin/env", "ip", "netns", "exec", in(host)});
    return command;
  }
  /// Returns the command that runs `command` on a host with its own hostname, processes and shared
  /// memory (/dev/shm).
  Words on_host(int host, Words command) const {
    command.insert(
        command.begin(),
        {"unshare", "--uts", "--pid", "--mount", "--fork", "--mount-proc", "--kill-child", "sh",
         "-c", "hostname " + name(host) + " && mount -t tmpfs none /dev/shm && exec \"$@\"", "sh"});
    return beside(host, std::move(command));
  }
  static std::string name(int host) { return "host" + std::to_string(host); }

 private:
  static std::string in(int host) {
    return "millrace" + std::to_string(::getpid()) + "h" + std::to_string(host);
  }
  void plug_in(int host) {
    const auto port = "p" + std::to_string(host);
    works_ = sh("ip netns add " + in(host)) &&
             sh("ip -n " + in(host) + " link add eth0 type veth peer name " + port + " netns " +
                in(count_)) &&
             sh("ip -n " + in(host) + " addr add " + address(host) + "/24 dev eth0") &&
             sh("ip -n " + in(host) + " link set eth0 up") &&
             sh("ip -n " + in(host) + " link set lo up") &&
             sh("ip -n " + in(count_) + " link set " + port + " master hub up");
  }
  const int count_;  // number of hosts; the switch has this index
  bool works_ = false;
};

inline constexpr const char* kNoHosts =
    "cannot create network namespaces with bridges (needs root, iproute2 and util-linux)";

}  // namespace millrace::testing
