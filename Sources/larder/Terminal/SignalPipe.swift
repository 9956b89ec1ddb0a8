import CLinux
import Glibc
import Platform

/// Signals that a thread receives one by one while it waits for input. Dispatch blocks signals on its threads, so a
/// signal handler runs on another thread, beside the code that it concerns; this one only notes the signal.
///
/// A process has at most one.
@MainActor
@safe
final class SignalPipe {
  /// The end that the handler writes to.
  nonisolated(unsafe) private static var writeEnd: Int32 = -1

  private let numbers: [Int32]
  private let readEnd: Descriptor
  /// What the signals do otherwise.
  private var actions: [Int32: sigaction] = [:]

  /// - Throws: `CommandFailure` if the process has no descriptors left.
  init(_ numbers: [Int32]) throws(CommandFailure) {
    self.numbers = numbers
    var ends: [Int32] = [-1, -1]
    guard unsafe pipe2(&ends, Int32(O_CLOEXEC | O_NONBLOCK)) == 0 else {
      throw CommandFailure(.usage, "can't make a pipe: \(systemMessage())")
    }
    readEnd = Descriptor(owning: ends[0])
    unsafe Self.writeEnd = ends[1]
  }

  isolated deinit {
    _ = unsafe close(Self.writeEnd)
  }

  /// Receives the signals instead of letting them act, for as long as the body runs.
  func receiving<Result>(_ body: () -> Result) -> Result {
    for number in numbers { actions[number] = set(Self.note, for: number) }
    defer { for (number, action) in actions { set(action, for: number) } }
    return body()
  }

  /// Waits until a descriptor is readable or a signal has arrived.
  /// - Returns: The signal; nil if there is none.
  func wait(for descriptor: Int32) -> Int32? {
    var entries = [readEnd.number, descriptor].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    repeat {
      var number: UInt8 = 0
      if unsafe read(readEnd.number, &number, 1) == 1 { return Int32(number) }
      _ = unsafe poll(&entries, 2, -1)
    } while entries[1].revents == 0
    return nil
  }

  /// Lets a signal that was received act after all. Returns if the process goes on, as it does when it was stopped and
  /// is continued.
  func deliver(_ number: Int32) {
    set(actions[number] ?? sigaction(), for: number)
    var own = sigset_t()
    var blocked = sigset_t()
    unsafe sigemptyset(&own)
    unsafe sigaddset(&own, number)
    unsafe pthread_sigmask(SIG_UNBLOCK, &own, &blocked)
    raise(number)
    unsafe pthread_sigmask(SIG_SETMASK, &blocked, nil)
    set(Self.note, for: number)
  }

  /// - Returns: What the signal did before.
  @discardableResult
  private func set(_ action: sigaction, for number: Int32) -> sigaction {
    var (action, before) = (action, sigaction())
    _ = unsafe sigaction(number, &action, &before)
    return before
  }

  private static let note: sigaction = {
    var action = sigaction()
    unsafe action.__sigaction_handler.sa_handler = { number in
      let before = errno
      var byte = UInt8(number)
      _ = unsafe write(SignalPipe.writeEnd, &byte, 1)
      errno = before
    }
    action.sa_flags = SA_RESTART
    return action
  }()
}
