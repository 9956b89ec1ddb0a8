import Foundation
import Testing

@testable import larder_bench

@Suite struct GateTests {
  private let old = [
    figure("cpu", 2.0), figure("throughput", 1_000, lower: false), figure("cpu", 3.0, of: "redis"),
  ]

  @Test func `Equal results pass the gate`() {
    #expect(!gate(old, old).hasFailed)
  }

  @Test func `A figure that exceeds the threshold fails and is named`() {
    let gate = gate(old, [figure("cpu", 2.3), old[1], old[2]])
    #expect(gate.hasFailed)
    #expect(gate.text.contains("FAIL  larder: get: cpu: 2.00 → 2.30 µs, worse by 15.0%"))
  }

  @Test func `Figures within the threshold or better pass the gate`() {
    #expect(!gate(old, [figure("cpu", 2.19), figure("throughput", 5_000, lower: false), old[2]]).hasFailed)
  }

  @Test func `Lower throughput is worse`() {
    #expect(gate(old, [old[0], figure("throughput", 899, lower: false), old[2]]).hasFailed)
  }

  @Test func `A missing figure fails the gate`() {
    #expect(gate(old, [old[0], old[2]]).hasFailed)
  }

  @Test func `Figures of peers count only with --all`() {
    let new = [old[0], old[1], figure("cpu", 9, of: "redis")]
    #expect(!gate(old, new).hasFailed)
    #expect(gate(old, new, includesPeers: true).hasFailed)
  }

  @Test func `The command reports the result by its exit status`() throws {
    let folder = try TemporaryFolder()
    func file(_ name: String, _ figures: [MeasuredFigure]) throws -> String {
      let path = "\(folder.path)/\(name)"
      try JSON.encode(["figures": Figures(figures)]).write(toFile: path, atomically: true, encoding: .utf8)
      return path
    }
    let (good, bad) = (try file("old.json", old), try file("new.json", [figure("cpu", 4), old[1]]))
    #expect(try BenchProcess.run(["gate", good, good, "--threshold", "10%"]).status == 0)
    let failed = try BenchProcess.run(["gate", good, bad, "--threshold", "10%"])
    #expect(failed.status == 1)
    #expect(failed.output.contains("FAIL  larder: get: cpu"))
    #expect(failed.errors.contains("1 of 2 figures"))
    #expect(try BenchProcess.run(["gate", good, "/nonexistent", "--threshold", "10%"]).status == 2)
  }

  @Test func `Only families that both files have are compared`() throws {
    let folder = try TemporaryFolder()
    func file(_ name: String, _ families: [String: Double]) throws -> String {
      let path = "\(folder.path)/\(name)"
      let results = families.mapValues { ["figures": Figures([figure("cpu", $0)])] }
      try JSON.encode(results).write(toFile: path, atomically: true, encoding: .utf8)
      return path
    }
    let old = try file("old.json", ["compare": 2, "client": 2])
    let (good, bad) = (try file("good.json", ["client": 2]), try file("bad.json", ["client": 3]))
    #expect(try BenchProcess.run(["gate", old, good, "--threshold", "10%"]).status == 0)
    #expect(try BenchProcess.run(["gate", old, bad, "--threshold", "10%"]).status == 1)
  }

  private func gate(_ old: [MeasuredFigure], _ new: [MeasuredFigure], includesPeers: Bool = false) -> Gate {
    Gate(old: Gate.Result(old), new: Gate.Result(new), threshold: 0.1, includesPeers: includesPeers)
  }
}

private func figure(
  _ name: String, _ value: Double, of contender: String = "larder", lower: Bool = true
) -> MeasuredFigure {
  MeasuredFigure("get", Quantity(name, "µs", isBetterLower: lower), of: contender, [value])
}
