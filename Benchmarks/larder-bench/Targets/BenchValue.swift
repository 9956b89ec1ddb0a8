/// The values of all workloads: printable, and of one size in a run.
enum BenchValue {
  static func bytes(size: Int) -> [UInt8] {
    (0..<size).map { UInt8(97 + $0 % 26) }
  }
}
