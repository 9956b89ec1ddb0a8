import CLinux

/// The length of a thread's time slices.
public enum TimeSlice {
  /// Asks the system for short time slices for the calling thread, or for those that it usually has. A thread with short
  /// ones runs sooner once it has something to do, also while others keep the processors busy. Linux heeds it from 6.12 on.
  /// - Parameter isShort: Whether the slices are to last 0.2 ms.
  public static func request(isShort: Bool) { _ = set_time_slice_of_thread(isShort ? 200_000 : 0) }
}
