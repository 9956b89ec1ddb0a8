/// What a planner has chosen.
package struct PlanChoice: Sendable {
  package let plan: FindPlan
  /// Why the plan was chosen.
  package let explanation: PlanExplanation
  /// What to do if the plan doesn't end as early as expected; nil if it is followed to its end.
  package let fallback: Fallback?

  /// Another plan, which finds the same documents.
  package struct Fallback: Sendable {
    package let plan: FindPlan
    package let explanation: PlanExplanation
    /// The number of documents after which this plan is begun instead.
    package let examinedCount: Int
  }
}
