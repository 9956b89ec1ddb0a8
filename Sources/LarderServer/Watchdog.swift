import Basics
import Dispatch

/// Probes a server again and again. As long as every thread answers, somebody is told that it lives; while one hangs, nobody is.
///
/// Safe because `probe` is touched on `queue` only, and all else is constant.
package final class Watchdog: @unchecked Sendable {
  private let queue = DispatchQueue(label: "larder.watchdog")
  private let timer: any DispatchSourceTimer
  private var probe: Probe?

  /// - Parameters:
  ///   - interval: between two probes. None begins before the last one was answered.
  ///   - isAlive: called when a probe was answered.
  ///   - isSilent: called every interval with the names of those that have not answered for all of it.
  package init(
    _ server: Server, every interval: Duration, isAlive: @escaping @Sendable () -> Void,
    isSilent: @escaping @Sendable ([String]) -> Void
  ) {
    timer = DispatchSource.makeTimerSource(queue: queue)
    let milliseconds = DispatchTimeInterval.milliseconds(Int(max(1, interval.wholeMilliseconds)))
    timer.schedule(deadline: .now(), repeating: milliseconds, leeway: .milliseconds(0))
    timer.setEventHandler { [weak self] in
      guard let self else { return }
      let silent = probe?.silent ?? []
      if silent.isEmpty { probe = server.probe(isAlive) } else { isSilent(silent) }
    }
    timer.activate()
  }

  deinit { timer.cancel() }

  /// Begins no more probes.
  package func stop() { timer.cancel() }
}
