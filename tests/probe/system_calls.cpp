// A seccomp filter (seccomp(2)) that turns every system call of a thread into a SIGSYS, save those made
// from one instruction: there the signal's handler makes the call again, on behalf of the thread.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstring>

#include "traps.hpp"

#ifndef __x86_64__
#error "the trap is written for x86-64: CMakeLists.txt builds it there only"
#endif

// long rtmeter_pass(long number, long a, long b, long c, long d, long e, long f): a raw system call. The
// kernel sees it come from the address behind the instruction.
asm(R"(
  .text
  .globl rtmeter_pass
  .type rtmeter_pass, @function
rtmeter_pass:
  mov %rdi, %rax
  mov %rsi, %rdi
  mov %rdx, %rsi
  mov %rcx, %rdx
  mov %r8, %r10
  mov %r9, %r8
  mov 8(%rsp), %r9
  syscall
  .globl rtmeter_passed
rtmeter_passed:
  ret
)");
extern "C" {
long rtmeter_pass(long number, long a, long b, long c, long d, long e, long f);
extern const char rtmeter_passed[];
}

namespace rtmeter::traps {
namespace {

// A handler's return restores the mask from before: what rt_sigprocmask set must be put there. SIGSYS
// stays unblocked, since the kernel kills a thread that traps with it blocked.
void keep_signal_mask(ucontext_t* context) {
  constexpr long kKernelMaskBytes = 8;
  rtmeter_pass(SYS_rt_sigprocmask, SIG_SETMASK, 0, reinterpret_cast<long>(&context->uc_sigmask),
               kKernelMaskBytes, 0, 0);
  sigdelset(&context->uc_sigmask, SIGSYS);
}

void on_system_call(int, siginfo_t* info, void* opaque) {
  const auto number = static_cast<std::size_t>(info->si_syscall);
  if (watching() && number < kMostCalls) ++counts().calls[side_now()][number];
  auto* context = static_cast<ucontext_t*>(opaque);
  auto& r = context->uc_mcontext.gregs;
  r[REG_RAX] =
      rtmeter_pass(info->si_syscall, r[REG_RDI], r[REG_RSI], r[REG_RDX], r[REG_R10], r[REG_R8], r[REG_R9]);
  if (info->si_syscall == SYS_rt_sigprocmask) keep_signal_mask(context);
}

bool install_handler() noexcept {
  struct sigaction action{};
  action.sa_sigaction = on_system_call;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  return sigaction(SIGSYS, &action, nullptr) == 0;
}

bool install_filter() noexcept {
  const auto address = reinterpret_cast<std::uintptr_t>(rtmeter_passed);
  constexpr std::uint32_t kAddress = offsetof(seccomp_data, instruction_pointer);
  sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 5, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kAddress),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(address), 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kAddress + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(address >> 32), 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{sizeof code / sizeof *code, code};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

bool set_trap() noexcept {
  thread_local bool set = false;
  if (!set) set = install_handler() && install_filter();
  return set;
}

}  // namespace rtmeter::traps
