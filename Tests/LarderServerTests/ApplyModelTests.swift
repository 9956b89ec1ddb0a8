import Documents
import Foundation
import LarderServer
import Platform
import Storage
import TestSupport
import Testing
import Wire

extension ServerTests {
  struct ApplyModelTests {
    @Test func `random applies have the same results on every engine as in the model`() throws {
      for seed in SeededGenerator.seeds(1) {
        let opened = try StoresOfAllEngines()
        let server = try TestServer(serving: opened.stores) { $0.findTime = .seconds(60) }
        for store in opened.stores {
          let client = try server.connect(credit: 1 << 30, store: store.name.text)
          var model = ApplyModel(SeededGenerator(seed: seed))
          for round in 0..<(SeededGenerator.isThorough ? 2_000 : 300) {
            let (operations, expected) = model.round()
            try client.send(Request.apply(operations, id: 5))
            let reply = try client.receive(within: 30)
            let context = "seed \(seed), \(store.name), round \(round): \(reply)"
            switch expected {
            case .success(let revision): #expect(reply.number == revision, "\(context)")
            case .failure(let failure):
              #expect(reply.isError(failure.code, id: 5), "\(failure) \(context)")
              #expect(reply.message.hasPrefix("operation \(failure.number) on \"\(failure.key)\": "), "\(context)")
            }
            try client.send(Request.all(id: 6))
            let entries = try client.receiveReplyStream(6).flatMap(\.entries)
            try #require(
              Dictionary(uniqueKeysWithValues: entries.map { ($0.text, ApplyModel.Entry($0.value, $0.revision)) })
                == model.entries, "\(context)")
          }
        }
      }
    }
  }
}

/// What a store has, and what random applies make of it, by the words of `Protocol/wire.md` §6.11.
private struct ApplyModel {
  struct Entry: Equatable {
    let value: [UInt8]
    let revision: UInt64

    init(_ value: [UInt8], _ revision: UInt64) { (self.value, self.revision) = (value, revision) }
  }

  struct Failure: Error {
    let code: ErrorCode
    /// The number of the operation, from 1.
    let number: Int
    let key: String
  }

  private struct Operation {
    enum Kind {
      case put([UInt8])
      case update(DocumentUpdate, creates: Bool)
      case delete, check
    }

    let key: String
    let kind: Kind
    var ifAbsent = false
    var ifRevision: UInt64?
  }

  private(set) var entries: [String: Entry] = [:]
  private var revision: UInt64 = 0
  private var random: SeededGenerator

  init(_ random: SeededGenerator) { self.random = random }

  private mutating func number(_ count: Int) -> Int { Int.random(in: 0..<count, using: &random) }

  /// Makes a random apply, and executes it.
  mutating func round() -> ([TestOperation], Result<UInt64, Failure>) {
    let operations = (0..<number(number(6) == 0 ? 90 : 8)).map { _ in operation() }
    return (operations.map(Self.record), execute(operations))
  }

  private mutating func operation() -> Operation {
    let key = "k\(number(6))"
    var operation: Operation
    switch number(8) {
    case 0, 1: operation = Operation(key: key, kind: .put(value()))
    case 2: operation = Operation(key: key, kind: .delete)
    case 3, 4: operation = Operation(key: key, kind: .check)
    default:
      let texts = [
        #"{"$inc":{"n":1}}"#, #"{"$inc":{"n":-3}}"#, #"{"a":1}"#, #"{"a":null,"b":{"c":2}}"#, "{}", #"{"n":0}"#,
        #"{"$push":{"l":1}}"#,
      ]
      let update = try! DocumentUpdate(parsing: texts[number(texts.count)])
      // Mostly, so that most of the requests succeed.
      operation = Operation(key: key, kind: .update(update, creates: number(6) > 0))
    }
    let isCheck = if case .check = operation.kind { true } else { false }
    if isCheck || number(6) == 0 {
      let isTrue = number(20) > 0
      let current = entries[key]?.revision
      switch operation.kind {
      case .put, .check: operation.ifAbsent = (current == nil) == isTrue
      default: break
      }
      if !operation.ifAbsent {
        operation.ifRevision = isTrue ? current ?? (isCheck ? 1 : nil) : UInt64(number(20))
      }
    }
    return operation
  }

  private mutating func value() -> [UInt8] {
    if number(10) == 0 { return [UInt8](repeating: 1, count: number(3)) }
    let size = [0, 0, 0, 0, 100, 9_000, 20_000, 40_000][number(8)]
    return ServerTests.ApplyTests.document(number(5), size: size)
  }

  private static func record(_ operation: Operation) -> TestOperation {
    switch operation.kind {
    case .put(let value):
      .put(operation.key, value, ifAbsent: operation.ifAbsent, ifRevision: operation.ifRevision)
    case .delete: .delete(operation.key, ifRevision: operation.ifRevision)
    case .update(let update, let creates):
      .update(operation.key, update.description, ifRevision: operation.ifRevision, creates: creates)
    case .check:
      if let revision = operation.ifRevision {
        .check(operation.key, revision: revision)
      } else {
        .checkAbsent(operation.key)
      }
    }
  }

  private mutating func execute(_ operations: [Operation]) -> Result<UInt64, Failure> {
    for (index, operation) in operations.enumerated() {
      let current = entries[operation.key]?.revision
      let holds = (!operation.ifAbsent || current == nil) && (operation.ifRevision.map { $0 == current } ?? true)
      guard holds else {
        return .failure(Failure(code: .conditionFailed, number: index + 1, key: operation.key))
      }
    }
    var values = entries.mapValues(\.value)
    var changed: Set<String> = []
    for (index, operation) in operations.enumerated() {
      let key = operation.key
      switch operation.kind {
      case .check: break
      case .put(let value):
        values[key] = value
        changed.insert(key)
      case .delete:
        if values.removeValue(forKey: key) != nil { changed.insert(key) }
      case .update(let update, let creates):
        guard let value = values[key] ?? (creates ? Array("{}".utf8) : nil) else {
          return .failure(Failure(code: .notFound, number: index + 1, key: key))
        }
        do throws(DocumentUpdateError) {
          let result = try update.apply(to: value.span)
          if result != values[key] { changed.insert(key) }
          values[key] = result
        } catch {
          return .failure(Failure(code: .illegalArgument, number: index + 1, key: key))
        }
      }
    }
    // An entry that was created and deleted again leaves nothing, and is no change, if updates have made it.
    let updated = Set(
      operations.compactMap { operation in
        if case .update = operation.kind { return operation.key }
        return nil
      })
    changed = changed.filter { !updated.contains($0) || values[$0] != nil || entries[$0] != nil }
    guard !changed.isEmpty else { return .success(0) }
    revision += 1
    for key in changed { entries[key] = values[key].map { Entry($0, revision) } }
    return .success(revision)
  }
}
