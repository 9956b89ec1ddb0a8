import Glibc

/// Returns a variable of the environment; nil if it is missing or empty.
func environment(_ name: String) -> String? {
  unsafe getenv(name).map { unsafe String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
}
