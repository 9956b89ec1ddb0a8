import Basics
import Larder

extension [UInt8] {
  /// A connection as a line of JSON.
  mutating func append(_ connection: ConnectionDescription) {
    let numbers = [
      ("connection", connection.number), ("requestsPerSecond", connection.requestsPerSecond),
      ("requests", connection.requests), ("receivedBytes", connection.receivedBytes),
      ("sentBytes", connection.sentBytes), ("waitingBytes", connection.waitingBytes),
      ("ageMilliseconds", connection.age.wholeMilliseconds),
    ]
    for (index, number) in numbers.enumerated() {
      append(index == 0 ? "{\"" : ",\"")
      append(contentsOf: number.0.utf8)
      append("\":")
      append(number: number.1)
    }
    if let process = connection.process {
      append(",\"process\":")
      append(number: UInt64(process))
    }
    if let user = connection.user {
      append(",\"user\":")
      append(number: UInt64(user))
    }
    let texts = [("command", connection.command), ("address", connection.address), ("client", connection.client)]
    for (name, text) in texts {
      guard let text else { continue }
      append(contentsOf: ",\"\(name)\":".utf8)
      append(jsonString: text)
    }
    append("}\n")
  }
}
