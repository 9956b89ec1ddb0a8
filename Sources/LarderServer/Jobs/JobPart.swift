import Documents
import Platform
import Storage

/// A part of the documents of a job, which are many, so that several threads examine them at once. Each part has a task
/// of its own, which the job's task joins at the end.
///
/// Safe because one thread at a time uses it: the runner's in a turn, and then the job's.
final class JobPart: @unchecked Sendable {
  let job: DocumentJob
  let task: any DocumentTask
  /// Why it ended early.
  private(set) var failure: ExaminationFailure?
  private(set) var examiner: DocumentExaminer
  private let maxKeptByteCount: Int
  private var clock: JobClock
  private var budget = WorkBudget()

  /// - Parameter maxKeptByteCount: The memory that it may keep.
  init(
    of job: DocumentJob, _ task: any DocumentTask, _ examiner: consuming DocumentExaminer, maxKeptByteCount: Int,
    _ runner: JobRunner
  ) {
    self.job = job
    self.task = task
    self.examiner = examiner
    self.maxKeptByteCount = maxKeptByteCount
    clock = JobClock(limit: job.limits.findTime)
    budget = WorkBudget { [unowned self, unowned runner] in
      self.job.mayWork && clock.goOn { runner.pause(self.job.sharer) }
    }
  }

  /// Works for one turn.
  func takeTurn(_ batch: inout DocumentBatch) -> DocumentJob.TurnEnd {
    defer { batch.end(in: job.store) }
    do throws(ExaminationFailure) {
      clock.beginTurn()
      var time = monotonicNanoseconds()
      while !clock.isTurnOver(at: time) {
        if job.mustEnd || examiner.isAtEnd { return end() }
        let values = try examiner.examineNext(&batch, task, maxKeptByteCount: maxKeptByteCount, &budget)
        time = monotonicNanoseconds()
        if let values {
          clock.endTurn(at: time)
          return .needsValues(values)
        }
      }
      clock.endTurn(at: time)
      if clock.isOverdue { throw .overdue }
      return .needsTurn
    } catch {
      failure = error
      return end()
    }
  }

  private func end() -> DocumentJob.TurnEnd {
    examiner.end()
    return .ended
  }
}
