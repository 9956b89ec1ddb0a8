import ArgumentParser
import Documents
import Larder

struct Increment: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Adds a number to a value, or to a field of a document.",
    discussion: """
      Prints the new number. The value is a whole number in decimal digits; with a FIELD, it is a document, and the \
      number may have a fraction. A key without an entry, or a missing field, counts as 0. The expiry is kept. Several \
      clients can increment the same number at the same time; each increment counts. If the value is not a number, the \
      exit status is 3.

      Example: larder increment counters visits
      Example: larder increment people mike12 age --by -1
      """)

  @OptionGroup private var connection: ConnectionOptions
  @OptionGroup private var entry: StoreAndKeyArguments

  @Argument(help: "The path of a field of a document, such as pet.age.")
  private var field: String?

  @Option(
    parsing: .unconditional, help: ArgumentHelp("The number to add. (default: 1)", valueName: "number"),
    transform: Self.number)
  private var by: JSONValue = .integer(1)

  private static func number(_ text: String) throws -> JSONValue {
    guard let value = try? JSONValue(parsing: text) else { throw ValidationError("it is not a number") }
    switch value {
    case .double where text.utf8.allSatisfy({ $0 != 0x2E && $0 | 0x20 != 0x65 }):
      throw ValidationError("it does not fit into 64 bits")
    case .integer, .double: return value
    default: throw ValidationError("it is not a number")
    }
  }

  func validate() throws {
    if field == nil, case .double = by {
      throw ValidationError("only a FIELD can have a fraction; give a whole number")
    }
  }

  func run() async throws {
    let store = try connection.client().store(entry.store.name)
    let number = try await OptimisticChange.perform {
      if let field { try await incrementField(field, in: store) } else { try await incrementValue(in: store) }
    }
    var output = Output()
    try output.writeLine(number)
  }

  private func incrementValue(in store: RemoteStore) async throws -> String {
    guard case .integer(let amount) = by else { preconditionFailure("validated") }
    let current = try await store.get(entry.key)
    let text = current.map { $0.bytes.flatMap { String(validating: $0, as: UTF8.self) } } ?? "0"
    guard let text, let number = Int64(text) else {
      throw failure("the value of '\(entry.key)' is not a whole number; give a FIELD if it is a document")
    }
    let (sum, overflow) = number.addingReportingOverflow(amount)
    guard !overflow else { throw failure("the sum of \(number) and \(amount) does not fit into 64 bits") }
    try await store.put(
      entry.key, Array(String(sum).utf8), if: current.map { .revision($0.revision) } ?? .absent,
      expiresIn: current?.expiresIn)
    return String(sum)
  }

  private func incrementField(_ field: String, in store: RemoteStore) async throws -> String {
    let current = try await store.get(entry.key)
    guard let document = current.map(\.bytes) ?? Array("{}".utf8) else {
      throw failure("'\(entry.key)' is a list, not a document")
    }
    let path = try DocumentArguments(for: "increment").field(field)
    do {
      let update = try DocumentUpdate(changes: [.increment(field, by: by)])
      // The new number, if the document is still as it was read when the server changes it.
      let changedText = try update.apply(to: document.span)
      let changed = try JSONValue(parsing: changedText.span)
      var batch = WriteBatch()
      if current == nil { batch.checkAbsent(entry.key) }
      batch.update(entry.key, update, ifRevision: current?.revision, orCreate: current == nil)
      _ = try await store.apply(batch)
      return path.names.reduce(changed as JSONValue?) { $0?[$1] }?.description ?? ""
    } catch let error as DocumentUpdateError {
      throw failure("'\(entry.key)' can't be incremented: \(error.reason)")
    }
  }

  private func failure(_ reason: String) -> CommandFailure {
    CommandFailure(.refused, "\(reason); nothing was changed")
  }
}
