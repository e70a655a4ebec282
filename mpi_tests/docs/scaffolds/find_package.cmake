cmake_minimum_required(VERSION 3.25)
project(my_solver LANGUAGES C CXX)
add_executable(my_solver main.cpp)
# [example]
