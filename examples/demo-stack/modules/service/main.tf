variable "name" {
  type = string
}

variable "replicas" {
  type = number

  validation {
    condition     = var.replicas > 0
    error_message = "A service needs at least one replica."
  }
}

variable "port" {
  type = number
}

resource "terraform_data" "replica" {
  count = var.replicas
  input = "${var.name}-${count.index}"
}

resource "terraform_data" "address" {
  input            = "${var.name}.internal:${var.port}"
  triggers_replace = [var.port]
}

output "address" {
  value = terraform_data.address.output
}
