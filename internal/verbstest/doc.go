// Package verbstest gives tests RDMA devices: real ones, or the lab's rxe and
// siw. A test asks for capabilities, never for a driver.
//
// Where there is no device a test skips, and says how to run it. Where
// GOVERBS_REQUIRE names drivers ("rxe,siw", as in the lab), a missing one
// fails the test instead: nothing else may skip.
package verbstest
