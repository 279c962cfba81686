// Facts about the machine a measurement ran on.
#include "system/machine.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <cctype>
#include <cstdint>
#include <filesystem>
#include <sstream>

#include "system/limits.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

namespace rtmeter {
namespace {

// What the processor itself says: CPUID's hypervisor bit and signature, x86 only.
std::string hypervisor_by_cpuid() {
#if defined(__x86_64__) || defined(__i386__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & (1U << 31)) == 0) return "";
  __cpuid(0x40000000, eax, ebx, ecx, edx);
  std::string signature;
  for (const unsigned part : {ebx, ecx, edx}) {
    for (int byte = 0; byte < 4; ++byte) signature += static_cast<char>(part >> (8 * byte));
  }
  static constexpr std::pair<const char*, const char*> kNames[] = {
      {"KVMKVMKVM", "kvm"},      {"VMwareVMware", "vmware"},   {"Microsoft Hv", "hyper-v"},
      {"XenVMMXenVMM", "xen"},   {"TCGTCGTCGTCG", "qemu-tcg"}, {"VBoxVBoxVBox", "virtualbox"},
      {"bhyve bhyve ", "bhyve"}, {"ACRNACRNACRN", "acrn"}};
  for (const auto& [known, name] : kNames) {
    if (signature.compare(0, std::string(known).size(), known) == 0) return name;
  }
  return "unknown hypervisor";
#else
  return "";
#endif
}

// x86, arm, or another name's beginning: kernels of 64 bits run programs of 32.
std::string family(const std::string& machine) {
  if (machine == "x86_64" || (machine.size() == 4 && machine.compare(2, 2, "86") == 0)) return "x86";
  return machine == "aarch64" ? "arm" : machine.substr(0, 3);
}

// Whether this program's processor is another program: qemu-user changes what uname(2) says, not what the
// kernel says of itself (Linux 6.1).
bool is_emulated(const std::string& machine) {
  const auto kernel = read_text("/proc/sys/kernel/arch");
  return kernel && family(*kernel) != family(machine);
}

// What firmware tables say: the device tree of ARM boards, DMI of PCs and servers.
std::string hypervisor_by_firmware() {
  if (const auto type = read_text("/sys/hypervisor/type"); type && !type->empty()) return *type;
  if (const auto compatible = read_text("/proc/device-tree/hypervisor/compatible")) {
    return compatible->find("kvm") != std::string::npos   ? "kvm"
           : compatible->find("xen") != std::string::npos ? "xen"
                                                          : "unknown hypervisor";
  }
  const std::string board = read_text("/proc/device-tree/compatible").value_or("");
  if (board.find("dummy-virt") != std::string::npos) return "qemu";
  const std::string vendor = read_text("/sys/class/dmi/id/sys_vendor").value_or("");
  const std::string product = read_text("/sys/class/dmi/id/product_name").value_or("");
  static constexpr std::pair<const char*, const char*> kNames[] = {{"QEMU", "qemu"},
                                                                   {"KVM", "kvm"},
                                                                   {"VMware", "vmware"},
                                                                   {"VirtualBox", "virtualbox"},
                                                                   {"innotek", "virtualbox"},
                                                                   {"Xen", "xen"},
                                                                   {"Virtual Machine", "hyper-v"},
                                                                   {"Google Compute", "kvm"},
                                                                   {"Apple Virtualization", "apple"},
                                                                   {"Parallels", "parallels"},
                                                                   {"BHYVE", "bhyve"},
                                                                   {"Bochs", "bochs"},
                                                                   {"OpenStack", "openstack"},
                                                                   {"Amazon EC2", "amazon"}};
  if (product.find(".metal") != std::string::npos) return "";  // Amazon lends such machines as a whole
  for (const auto& [known, name] : kNames) {
    if (vendor.find(known) != std::string::npos || product.find(known) != std::string::npos) return name;
  }
  return "";
}

// "model name" on x86; boards name themselves in the device tree, other ARM processors only by number.
std::string cpu_model() {
  for (const char* key : {"model name", "Model", "Hardware"}) {
    if (const auto value = status_value("/proc/cpuinfo", key)) return *value;
  }
  if (const auto board = read_text("/proc/device-tree/model")) return *board;
  const auto implementer = status_value("/proc/cpuinfo", "CPU implementer");
  const auto part = status_value("/proc/cpuinfo", "CPU part");
  return implementer && part ? "implementer " + *implementer + " part " + *part : "unknown";
}

}  // namespace

Json machine_facts() {
  utsname names{};
  uname(&names);
  std::string hypervisor = is_emulated(names.machine) ? "qemu-tcg" : hypervisor_by_cpuid();
  if (hypervisor.empty()) hypervisor = hypervisor_by_firmware();
  Json j = Json::object();
  j["hostname"] = names.nodename;
  j["kernel"] = names.release;
  j["kernel_version"] = names.version;
  j["architecture"] = names.machine;
  j["cpu_model"] = cpu_model();
  j["cpus_online"] = sysconf(_SC_NPROCESSORS_ONLN);
  j["boot_id"] = read_text("/proc/sys/kernel/random/boot_id").value_or("unknown");
  // Clocks that count from the boot agree only within one time namespace.
  std::error_code none;
  j["time_namespace"] = std::filesystem::read_symlink("/proc/self/ns/time", none).string();
  j["virtual_machine"] = hypervisor.empty() ? Json() : Json(hypervisor);
  return j;
}

}  // namespace rtmeter
