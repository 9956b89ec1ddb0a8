import DocumentTestSupport
import Documents
import TestSupport
import Testing

@Suite struct UpdatePropertyTests {
  private static let few = 1_000

  // MARK: Random updates

  private func path(_ random: inout SeededGenerator) -> String {
    let names = ["a", "a", "b", "0", "1", "2", #"x\.y"#, #"\$z"#, "é", #"\b"#]
    return (0..<Int.random(in: 1...4, using: &random)).map { _ in names.randomElement(using: &random)! }
      .joined(separator: ".")
  }

  private func value(_ depth: Int = 2, _ random: inout SeededGenerator) throws -> JSONValue {
    let value = RandomDocument.value(false, depth, &random)
    return try JSONValue(parsing: #"{"v":\#(Self.text(value))}"#)["v"]!
  }

  private static func text(_ value: RandomDocument.Value) -> String { RandomDocument(value: value).text() }

  private func change(_ random: inout SeededGenerator) throws -> DocumentUpdate.Change {
    let path = path(&random)
    switch Int.random(in: 0..<8, using: &random) {
    case 0...2: return .set(path, to: try value(2, &random))
    case 3...4: return .unset(path)
    case 5: return .increment(path, by: [1, -3, 0.5, 9_223_372_036_854_775_807].randomElement(using: &random)!)
    case 6: return .push(try value(1, &random), to: path)
    default: return .push(each: [try value(1, &random), ["$x": 1]], to: path)
    }
  }

  private func patch(_ depth: Int, _ random: inout SeededGenerator) throws -> JSONValue {
    var members = JSONObject()
    let names = RandomDocument.sortedNames.filter { depth < 3 || ($0 != "_id" && $0 != "$z") }
    for _ in 0..<Int.random(in: 0...4, using: &random) {
      let name = names.randomElement(using: &random)!
      switch Int.random(in: 0..<4, using: &random) {
      case 0: members[name] = .null
      case 1: members[name] = try value(1, &random)
      default: members[name] = depth > 0 ? try patch(depth - 1, &random) : 1
      }
    }
    return .object(members)
  }

  /// A random update; nil if the changes that were drawn conflict.
  private func update(_ random: inout SeededGenerator) throws -> DocumentUpdate? {
    if Bool.random(using: &random) { return try DocumentUpdate(try patch(3, &random)) }
    var changes: [DocumentUpdate.Change] = []
    for _ in 0..<Int.random(in: 1...5, using: &random) { changes.append(try change(&random)) }
    do throws(DocumentUpdateError) {
      return try DocumentUpdate(changes: changes)
    } catch {
      #expect(error.code == .conflict)
      return nil
    }
  }

  // MARK: Laws

  @Test func `an update of bytes is the update of the tree`() throws {
    var (successes, failures) = (0, 0)
    for seed in SeededGenerator.seeds(Self.few) {
      var random = SeededGenerator(seed: seed)
      let text = RandomDocument(hasDuplicates: true, using: &random).text()
      guard let update = try update(&random) else { continue }
      let document = try JSONValue(parsing: text)
      var expected: JSONValue?
      var expectedCode: DocumentUpdateError.Code?
      do throws(DocumentUpdateError) {
        expected = try UpdateOracle.apply(update.json, to: document)
      } catch { expectedCode = error.code }
      do throws(DocumentUpdateError) {
        let result = try update.apply(to: Array(text.utf8).span)
        #expect((try? JSONValue(parsing: result.span)) == expected, "seed \(seed): \(text) with \(update)")
        successes += 1
      } catch {
        #expect(expected == nil, "seed \(seed): \(text) with \(update): \(error)")
        if changeCount(update) == 1 { #expect(error.code == expectedCode, "seed \(seed): \(text) with \(update)") }
        failures += 1
      }
    }
    if !SeededGenerator.isThorough { #expect(successes > 300 && failures > 30) }
  }

  private func changeCount(_ update: DocumentUpdate) -> Int {
    guard case .object(let operators) = update.json else { return 0 }
    return operators.reduce(0) { count, member in
      if case .object(let operands) = member.value { count + operands.count } else { count }
    }
  }

  @Test func `a value that is set is all that changes`() throws {
    for seed in SeededGenerator.seeds(Self.few) {
      var random = SeededGenerator(seed: seed)
      let document = RandomDocument(hasDuplicates: false, using: &random)
      let paths = document.paths.filter { $0[0] != "_id" }
      guard let path = paths.randomElement(using: &random) else { continue }
      let fieldPath = path.map { FieldPath(names: [$0]).description }.joined(separator: ".")
      let update = try DocumentUpdate(changes: [.set(fieldPath, to: "new")])
      let result = String(decoding: try update.apply(to: Array(document.text().utf8).span), as: UTF8.self)
      #expect(result == document.text(replacing: path, by: "\"new\""), "seed \(seed): \(document.text()) \(fieldPath)")
    }
  }

  @Test func `what is added and removed again leaves the text as it was`() throws {
    for seed in SeededGenerator.seeds(Self.few) {
      var random = SeededGenerator(seed: seed)
      let text = RandomDocument(hasDuplicates: true, using: &random).text()
      let names = (0..<Int.random(in: 1...3, using: &random)).map { "new\($0)" }
      let added = try updated(text, "{" + names.map { #""\#($0)":{"x":[]}"# }.joined(separator: ",") + "}")
      #expect(try updated(added, "{" + names.map { #""\#($0)":null"# }.joined(separator: ",") + "}") == text)
      #expect(try updated(text, "{}") == text)
    }
  }

  @Test func `a merge patch that is applied again changes nothing`() throws {
    for seed in SeededGenerator.seeds(Self.few) {
      var random = SeededGenerator(seed: seed)
      let text = Array(RandomDocument(hasDuplicates: true, using: &random).text().utf8)
      let patch = try DocumentUpdate(try patch(3, &random))
      let once = try patch.apply(to: text.span)
      #expect(try patch.apply(to: once.span) == once, "seed \(seed)")
    }
  }

  @Test func `an update's JSON reads back as the same update`() throws {
    for seed in SeededGenerator.seeds(Self.few) {
      var random = SeededGenerator(seed: seed)
      guard let update = try update(&random) else { continue }
      let again = try DocumentUpdate(parsing: update.description)
      #expect(again == update, "seed \(seed): \(update)")
      #expect(again.description == update.description, "seed \(seed): \(update)")
      // Members are added in the same order, too.
      let text = Array(RandomDocument(hasDuplicates: false, using: &random).text().utf8)
      let results = [update, again].map { update -> [UInt8]? in
        do throws(DocumentUpdateError) { return try update.apply(to: text.span) } catch { return nil }
      }
      #expect(results[0] == results[1], "seed \(seed): \(update)")
    }
  }
}
