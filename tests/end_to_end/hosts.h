// Hosts that are network namespaces with a cable each.
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

/// Hosts 0, 1, ... with the addresses 10.77.0.1, .2, ... at one switch, all of them namespaces;
/// gone with the test.
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
  /// The cable of a host is there or cut.
  void link(int host, bool up) const {
    ASSERT_TRUE(
        sh("ip -n " + in(count_) + " link set p" + std::to_string(host) + (up ? " up" : " down")));
  }
  /// Packets of a host are late and some are lost; whether this kernel can do that.
  bool disturb(int host) const {
    return sh("ip netns exec " + in(host) +
              " tc qdisc add dev eth0 root netem delay 5ms 2ms loss 1%");
  }
  static std::string address(int host) { return "10.77.0." + std::to_string(host + 1); }
  /// `command` run on a host, among the processes of this machine.
  Words beside(int host, Words command) const {
    command.insert(command.begin(), {"/usr/bin/env", "ip", "netns", "exec", in(host)});
    return command;
  }
  /// `command` run on a host of that name, among processes and in a memory (/dev/shm) of its own.
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
  const int count_;  // the switch comes after them
  bool works_ = false;
};

inline constexpr const char* kNoHosts =
    "no network namespaces with bridges can be made here (needs root, iproute2 and util-linux)";

}  // namespace millrace::testing
