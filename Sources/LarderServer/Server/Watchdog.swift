import Basics
import Dispatch
import Platform

/// Checks again and again that every thread of a server responds, and reports it. While a thread hangs, it reports
/// which one instead.
///
/// Safe because `probe` is used only on `queue`, and everything else is constant.
package final class Watchdog: @unchecked Sendable {
  private let queue = DispatchQueue(label: "larder.watchdog")
  private let timer: any DispatchSourceTimer
  private var probe: Probe?

  /// - Parameters:
  ///   - interval: the time between two probes. A probe begins only after the previous one has completed.
  ///   - onAlive: called when a probe has completed.
  ///   - onSilent: called once per interval with the names of the threads that have not responded for all of it.
  package init(
    _ server: Server, every interval: Duration, onAlive: @escaping @Sendable () -> Void,
    onSilent: @escaping @Sendable ([String]) -> Void
  ) {
    timer = DispatchSource.makeTimerSource(queue: queue)
    let milliseconds = DispatchTimeInterval.milliseconds(Int(max(1, interval.wholeMilliseconds)))
    timer.schedule(deadline: .now(), repeating: milliseconds, leeway: .milliseconds(0))
    timer.setEventHandler { [weak self] in
      guard let self else { return }
      let silent = probe?.silentThreads ?? []
      if silent.isEmpty { probe = server.probe(onAlive) } else { onSilent(silent) }
    }
    timer.activate()
  }

  deinit { timer.cancel() }

  /// Begins no more probes.
  package func stop() { timer.cancel() }
}

/// One check that several threads respond. Each responds when it has time to; a thread that hangs never does. Used by
/// any thread.
final class Probe: Sendable {
  private let silent: Lock<[Int: String]>
  private let completion: @Sendable () -> Void

  /// - Parameter completion: called once, by the last thread to respond.
  init(_ names: [String], _ completion: @escaping @Sendable () -> Void) {
    silent = Lock(Dictionary(uniqueKeysWithValues: names.enumerated().map { ($0, $1) }))
    self.completion = completion
  }

  /// The names of the threads that have not responded.
  var silentThreads: [String] { silent.withLock { Array($0.values) }.sorted() }

  func didRespond(_ index: Int) {
    let isLast = silent.withLock { $0.removeValue(forKey: index) != nil && $0.isEmpty }
    if isLast { completion() }
  }
}
